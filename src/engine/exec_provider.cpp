#include "engine/exec_provider.h"

#include <filesystem>

#include "base/text.h"
#include "engine/exec_text.h"

namespace mayfly {
namespace {

std::string lines_of(std::span<const Ordered> machines) {
  std::string lines;
  for (const Ordered& machine : machines) lines += exec_machine(machine);
  return lines;
}

}  // namespace

ExecProvider::ExecProvider(ExecSpec spec, MachineProgram machine)
    : spec_(std::move(spec)), machine_(std::move(machine)) {
  for (const Market market : {Market::spot, Market::on_demand}) machine_.notice.try_emplace(market, spec_.notice);
}

EngineChoice ExecProvider::choice(ExecSpec spec, MachineProgram machine) {
  EngineChoice chosen;
  chosen.expected = [spec, machine](const MachineRole& role) { return ExecProvider(spec, machine).expected(role); };
  chosen.start = [spec = std::move(spec), machine = std::move(machine)](Loop& loop, const RunTerms& terms,
                                                                        Engine::Calls calls) {
    MachineProgram own = machine;
    own.terms = terms;
    return std::make_unique<AskedEngine>(loop, std::make_unique<ExecProvider>(spec, std::move(own)), terms,
                                         std::move(calls));
  };
  return chosen;
}

std::string ExecProvider::name() const { return std::filesystem::path(spec_.program.front()).filename().string(); }

Expectation ExecProvider::expected(const MachineRole& role) const {
  return {.start = spec_.start, .notice = machine_.notice.at(role.market)};
}

ProgramCall ExecProvider::asked(const char* verb, const std::string& lines) const {
  ProgramCall question{.words = spec_.program, .input = exec_head(machine_.terms.run) + lines};
  question.words.emplace_back(verb);
  return question;
}

Result<ProgramCall> ExecProvider::order(std::span<const Order> orders) {
  std::string lines;
  for (const Order& order : orders) {
    const auto type = spec_.types.find(order.role.type);
    const auto cores = type == spec_.types.end() ? std::nullopt : type->second.cores;
    lines += exec_order(order, machine_.terms.run, machine_script(machine_, order, cores));
  }
  return asked("order", lines);
}

/// A program that fails half way may have got some of them: what it has not answered for is in doubt, not refused.
std::vector<Granted> ExecProvider::placed(std::span<const Order> orders, const ProgramEnd& end) {
  const auto read = exec_placed(end.output);
  std::string why = !read ? read.error().message : end.well() ? "it gave no answer for this machine" : end.why();
  why = fmt::format("{} order: {}", name(), why);
  std::vector<Granted> all;
  for (const Order& order : orders) {
    const bool there = read && read->contains(order.launch);
    all.push_back(there ? read->at(order.launch) : Granted{.doubt = why});
  }
  return all;
}

Result<std::vector<Listed>> ExecProvider::listed(const ProgramEnd& end) {
  if (!end.well()) return unexpected(Error{end.why()});
  return exec_listed(end.output);
}

ProgramCall ExecProvider::end(std::span<const Ordered> machines) { return asked("end", lines_of(machines)); }
ProgramCall ExecProvider::tell(std::span<const Ordered> machines) { return asked("tell", lines_of(machines)); }
ProgramCall ExecProvider::tail(const Ordered& machine) { return asked("tail", exec_machine(machine)); }

}  // namespace mayfly
