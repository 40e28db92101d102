#include "engine/exec_text.h"

#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "base/text.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::size_t kLongestWords = 300;

/// Paths need not be UTF-8.
std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string shown(std::string_view line) { return printable(line.substr(0, kLongestWords)); }

/// A text of one line of the program's; empty where it is absent. None where it is something else.
std::optional<std::string> words_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return "";
  if (!found->is_string()) return std::nullopt;
  return printable(found->get<std::string>().substr(0, kLongestWords));
}

/// Every object of the output with its launch, which no two have.
Result<void> each_machine(std::string_view output,
                          std::function<Result<void>(int, const Json&, std::string_view)> take) {
  std::set<int> seen;
  for (const std::string_view line : split(output, '\n')) {
    if (trimmed(line).empty()) continue;
    const Json json = parsed_json(line);
    if (!json.is_object()) return fail("'{}': want a JSON object", shown(line));
    const auto launch = json.find("launch");
    if (launch == json.end() || !launch->is_number_integer() || launch->get<double>() < 0 ||
        launch->get<double>() > kMostLaunches)
      return fail("'{}': want a launch, as it was ordered", shown(line));
    if (!seen.insert(launch->get<int>()).second) return fail("'{}': this launch stands there twice", shown(line));
    if (auto taken = take(launch->get<int>(), json, line); !taken) return taken;
  }
  return {};
}

std::optional<Listed::Phase> phase_named(const std::string& stage) {
  using Phase = Listed::Phase;
  if (stage == "ordered") return Phase::waiting;
  if (stage == "starting") return Phase::starting;
  if (stage == "running") return Phase::running;
  return stage == "gone" ? std::optional(Phase::over) : std::nullopt;
}

std::optional<Ending::Kind> ending_named(const std::string& ending) {
  using Kind = Ending::Kind;
  if (ending == "preempted") return Kind::preempted;
  if (ending == "finished") return Kind::finished;
  if (ending == "failed") return Kind::failed;
  return ending == "refused" ? std::optional(Kind::refused) : std::nullopt;
}

Result<Listed> listed_of(int launch, const Json& json, std::string_view line) {
  const auto id = words_of(json, "id"), stage = words_of(json, "stage"), where = words_of(json, "where"),
             why = words_of(json, "why"), ending = words_of(json, "ending");
  if (!id || !stage || !where || !why || !ending)
    return fail("'{}': want texts for id, stage, where, why and ending", shown(line));
  if (id->empty()) return fail("'{}': want an id", shown(line));
  Listed one{.launch = launch, .id = *id, .where = where->empty() ? *id : *where};
  const auto phase = phase_named(*stage);
  if (!phase) return fail("'{}': stage '{}', want ordered, starting, running or gone", shown(line), *stage);
  one.phase = *phase;
  if (const auto age = json.find("age_s"); age != json.end() && !age->is_null()) {
    const double seconds = age->is_number() ? age->get<double>() : -1;
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kMostAge.count())
      return fail("'{}': age_s, want seconds since it is paid for", shown(line));
    one.age = Seconds(seconds);
  }
  if (one.phase == Listed::Phase::waiting && !why->empty()) {
    one.waits = "for " + *why;
    one.where += ", waits for " + *why;
  }
  if (one.phase != Listed::Phase::over) return one;
  const auto kind = ending_named(*ending);
  if (!kind) return fail("'{}': ending '{}', want preempted, finished, failed or refused", shown(line), *ending);
  one.ending = {.kind = *kind, .how = why->empty() ? fmt::format("{} ({})", *ending, one.where) : *why};
  return one;
}

}  // namespace

std::string exec_head(const std::string& run) { return line_of({{"format", kExecFormat}, {"run", run}}); }

std::string exec_order(const Order& order, const std::string& run, const std::string& command) {
  return line_of({{"launch", order.launch},
                  {"name", machine_name(run, order.launch)},
                  {"role", order.role.server ? "server" : "worker"},
                  {"type", order.role.type},
                  {"zone", order.role.zone},
                  {"market", name(order.role.market)},
                  {"command", command}});
}

std::string exec_machine(const Ordered& machine) { return line_of({{"launch", machine.launch}, {"id", machine.id}}); }

Result<std::map<int, Granted>> exec_placed(std::string_view output) {
  std::map<int, Granted> all;
  const auto read = each_machine(output, [&](int launch, const Json& json, std::string_view line) -> Result<void> {
    const auto id = words_of(json, "id"), refused = words_of(json, "refused");
    if (!id || !refused || id->empty() == refused->empty())
      return fail("'{}': want an id, or why it is refused", shown(line));
    all[launch] = {.id = *id, .refused = *refused};
    return {};
  });
  if (!read) return unexpected(read.error());
  return all;
}

Result<std::vector<Listed>> exec_listed(std::string_view output) {
  std::vector<Listed> all;
  const auto read = each_machine(output, [&](int launch, const Json& json, std::string_view line) -> Result<void> {
    auto one = listed_of(launch, json, line);
    if (!one) return unexpected(one.error());
    all.push_back(*std::move(one));
    return {};
  });
  if (!read) return unexpected(read.error());
  return all;
}

}  // namespace mayfly
