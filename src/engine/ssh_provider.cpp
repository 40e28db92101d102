#include "engine/ssh_provider.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"

namespace mayfly {
namespace {

/// A computer that runs already: what its program and the job take.
constexpr Seconds kSshStart{60};
constexpr Seconds kSshScriptStart{300};

}  // namespace

bool suits(const SshHost& host, const MachineRole& role) {
  const bool market = host.spot == (role.market == Market::spot);
  const bool zone = role.zone.empty() || role.zone == host.zone;
  return market && zone && (role.server || host.type == role.type);
}

SshProvider::SshProvider(SshSpec spec, MachineProgram machine)
    : spec_(std::move(spec)), machine_(std::move(machine)), hosts_(spec_.hosts.size()) {
  for (const Market market : {Market::spot, Market::on_demand}) machine_.notice.try_emplace(market, spec_.notice);
}

EngineChoice SshProvider::choice(SshSpec spec, MachineProgram machine) {
  EngineChoice chosen;
  chosen.expected = [spec, machine](const MachineRole& role) { return SshProvider(spec, machine).expected(role); };
  chosen.start = [spec = std::move(spec), machine = std::move(machine)](Loop& loop, const RunTerms& terms,
                                                                        Engine::Calls calls) {
    MachineProgram own = machine;
    own.terms = terms;
    return std::make_unique<AskedEngine>(loop, std::make_unique<SshProvider>(spec, std::move(own)), terms,
                                         std::move(calls));
  };
  return chosen;
}

Expectation SshProvider::expected(const MachineRole& role) const {
  return {.start = machine_.runs_script(role) ? kSshScriptStart : kSshStart, .notice = machine_.notice.at(role.market)};
}

Result<std::size_t> SshProvider::room_for(const MachineRole& role) const {
  std::size_t best = spec_.hosts.size();
  int most = 0, suiting = 0, held = 0;
  std::string silent;
  for (std::size_t i = 0; i < spec_.hosts.size(); ++i) {
    if (!suits(spec_.hosts[i], role)) continue;
    const int used = hosts_[i].others + static_cast<int>(hosts_[i].launches.size());
    suiting += spec_.hosts[i].machines;
    held += std::min(used, spec_.hosts[i].machines);
    if (!hosts_[i].silent.empty())
      silent = fmt::format("; {} does not answer: {}", spec_.hosts[i].host, hosts_[i].silent);
    const int room = hosts_[i].silent.empty() ? spec_.hosts[i].machines - used : 0;
    if (room <= most) continue;
    most = room;
    best = i;
  }
  if (best < spec_.hosts.size()) return best;
  const std::string what = role.server ? "servers" : role.type;
  if (suiting == 0)
    return fail("engine.ssh.hosts has none for {}, {}{}", what, mayfly::name(role.market),
                role.zone.empty() ? "" : ", " + role.zone);
  return fail("no host has room for {}: {} of {} in use{}", what, held, suiting, silent);
}

void SshProvider::put(int launch, std::size_t host) {
  machines_[launch].host = host;
  hosts_[host].launches.insert(launch);
}

Result<ProgramCall> SshProvider::order(std::span<const Order> orders) {
  std::map<std::size_t, std::string> texts;
  without_room_.clear();
  for (const Order& order : orders) {
    const auto host = room_for(order.role);
    if (!host) {
      without_room_[order.launch] = host.error().message;
      continue;
    }
    put(order.launch, *host);
    std::string& text = texts[*host];
    if (text.empty()) text = ssh_prelude(spec_.hosts[*host]);
    text += ssh_start(machine_.terms.run, order.launch, machine_script(machine_, order, spec_.hosts[*host].cores));
  }
  std::vector<SshWord> words;
  for (auto& [host, text] : texts) words.push_back({.host = host, .text = std::move(text)});
  return ssh_call(spec_, words, {.program = machine_.program, .name = machine_.copy});
}

std::vector<Granted> SshProvider::placed(std::span<const Order> orders, const ProgramEnd& end) {
  const auto answers = ssh_answers(end.output);
  std::vector<Granted> all;
  for (const Order& order : orders) {
    Granted& one = all.emplace_back();
    if (const auto none = without_room_.find(order.launch); none != without_room_.end()) {
      one.refused = none->second;
      continue;
    }
    const std::size_t host = machines_.at(order.launch).host;
    const auto answer = answers.find(host);
    if (answer != answers.end() && answer->second.well()) {
      one.id = spec_.hosts[host].host;
      continue;
    }
    // Its shell may have begun it before the connection broke.
    hosts_[host].silent = answer == answers.end() ? end.why() : answer->second.why();
    one.doubt = fmt::format("{}: {}", spec_.hosts[host].host, hosts_[host].silent);
  }
  return all;
}

ProgramCall SshProvider::list() {
  std::vector<SshWord> words;
  for (std::size_t i = 0; i < spec_.hosts.size(); ++i)
    words.push_back({.host = i, .text = ssh_prelude(spec_.hosts[i]) + ssh_list(machine_.terms.run)});
  return ssh_call(spec_, words);
}

Result<std::vector<Listed>> SshProvider::listed(const ProgramEnd& end) {
  const auto answers = ssh_answers(end.output);
  std::vector<Listed> all;
  std::string trouble = end.well() ? "no host answered" : end.why();
  bool any = false;
  for (std::size_t i = 0; i < spec_.hosts.size(); ++i) {
    const auto answer = answers.find(i);
    const bool well = answer != answers.end() && answer->second.well();
    any = any || well;
    Host& host = hosts_[i];
    host.silent = well ? "" : answer == answers.end() ? end.why() : answer->second.why();
    if (!well) trouble = fmt::format("{}: {}", spec_.hosts[i].host, host.silent);
    if (!well) continue;
    SshHeld held = ssh_held(answer->second, spec_.hosts[i]);
    host.others = held.others;
    for (const int launch : std::exchange(host.launches, {})) machines_.erase(launch);
    for (Listed& one : held.machines) {
      if (one.phase != Listed::Phase::over) {
        put(one.launch, i);
        machines_[one.launch].seen = true;
      }
      all.push_back(std::move(one));
    }
  }
  if (!any) return unexpected(Error{trouble});
  // What a silent host had is there, for all that is known; what was ended there is as good as gone.
  std::erase_if(machines_, [&](const auto& entry) {
    const auto& [launch, machine] = entry;
    Host& host = hosts_[machine.host];
    if (host.silent.empty()) return false;
    const bool over = machine.ended || !machine.seen;
    const std::string& place = spec_.hosts[machine.host].host;
    if (over) host.launches.erase(launch);
    if (!over) all.push_back({.launch = launch, .id = place, .where = fmt::format("{}, which does not answer", place)});
    return over;
  });
  return all;
}

std::string SshProvider::unheard() const {
  std::vector<std::string> silent;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].silent.empty()) silent.push_back(fmt::format("{} ({})", spec_.hosts[i].host, hosts_[i].silent));
  }
  return fmt::format("{}", fmt::join(silent, ", "));
}

ProgramCall SshProvider::each(std::span<const Ordered> machines, std::string (*text)(const std::string&, int)) {
  std::map<std::size_t, std::string> texts;
  for (const Ordered& machine : machines) {
    const auto host = std::ranges::find(spec_.hosts, machine.id, &SshHost::host);
    if (host == spec_.hosts.end()) continue;
    std::string& all = texts[static_cast<std::size_t>(host - spec_.hosts.begin())];
    if (all.empty()) all = ssh_prelude(*host);
    all += text(machine_.terms.run, machine.launch);
  }
  std::vector<SshWord> words;
  for (auto& [host, all] : texts) words.push_back({.host = host, .text = std::move(all)});
  return ssh_call(spec_, words);
}

ProgramCall SshProvider::end(std::span<const Ordered> machines) {
  for (const Ordered& machine : machines) {
    if (const auto found = machines_.find(machine.launch); found != machines_.end()) found->second.ended = true;
  }
  return each(machines, ssh_end);
}

/// Machines that see the run's folder have their logs there.
ProgramCall SshProvider::tail(const Ordered& machine) {
  return machine_.own_files ? each(std::span(&machine, 1), ssh_tail) : ProgramCall{};
}

std::string SshProvider::words_of(const ProgramEnd& end) const {
  std::string words;
  for (const auto& [host, answer] : ssh_answers(end.output)) {
    for (const std::string& line : answer.lines) words += line + "\n";
  }
  return words;
}

ProgramCall SshProvider::tell(std::span<const Ordered> machines) { return each(machines, ssh_tell); }

}  // namespace mayfly
