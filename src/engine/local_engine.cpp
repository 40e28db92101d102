#include "engine/local_engine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "engine/machine_process.h"
#include "engine/process.h"
#include "engine/tagged.h"

namespace mayfly {
namespace {

/// Until a process of this computer says its first word; a script loads a library or two before.
constexpr Seconds kUsualStart{30};
constexpr Seconds kScriptStart{300};
constexpr std::size_t kTail = 2000;

Ending ending_of(int status) {
  using Kind = Ending::Kind;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const bool taken = signal == SIGKILL || signal == SIGTERM;
    return {.kind = taken ? Kind::preempted : Kind::failed, .how = fmt::format("killed by signal {}", signal)};
  }
  // The shell around a script says so of what ended in it.
  const int code = WEXITSTATUS(status);
  const bool taken = code == 128 + SIGTERM || code == 128 + SIGKILL;
  return {.kind = taken       ? Kind::preempted
                  : code == 0 ? Kind::finished
                              : Kind::failed,
          .how = fmt::format("exit code {}", code)};
}

/// A computer that lacks room now may have some later: no fault of the program.
Ending not_started(const std::string& what, int error) {
  const bool passes = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
  return {.kind = passes ? Ending::Kind::refused : Ending::Kind::failed,
          .how = fmt::format("{} cannot be started: {}", what, std::strerror(error))};
}

void use_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

std::vector<int> berth_cores(int berth, int capacity, int cores) {
  const int each = std::max(1, cores / std::max(1, capacity));
  std::vector<int> mine;
  for (int i = 0; i < each; ++i) mine.push_back((berth * each + i) % cores);
  return mine;
}

LocalEngine::LocalEngine(Loop& loop, Options options, Calls calls)
    : loop_(loop),
      options_(std::move(options)),
      calls_(std::move(calls)),
      weather_timer_(loop),
      price_timer_(loop),
      rng_(options_.seed) {
  if (!options_.weather) return;
  // What has passed is made up for at once: as many machines as there would be by now.
  const Seconds past = options_.now() * options_.speed;
  const auto& changes = options_.weather->changes;
  while (change_at_ < changes.size() && changes[change_at_].time <= past) ++change_at_;
  schedule_weather();
}

EngineChoice LocalEngine::choice(Options options) {
  EngineChoice chosen;
  chosen.expected = [script = options.script.has_value(), notice = options.notice](const MachineRole& role) {
    return usual(role, script, notice);
  };
  chosen.start = [options = std::move(options)](Loop& loop, const RunTerms& terms, Calls calls) {
    Options own = options;
    own.run = terms.run;
    own.arguments.insert(own.arguments.begin(), {"--join", terms.join});
    own.join = terms.join;
    own.logs = terms.directory / "logs";
    own.token = terms.token;
    own.now = terms.now;
    return std::make_unique<LocalEngine>(loop, std::move(own), std::move(calls));
  };
  return chosen;
}

std::filesystem::path LocalEngine::log(int launch) const {
  return options_.logs / fmt::format("worker-{}.log", launch);
}

std::string LocalEngine::tail(int launch) const {
  const auto text = load_own_text(log(launch));
  return !text ? "" : text->size() > kTail ? text->substr(text->size() - kTail) : *text;
}

Expectation LocalEngine::usual(const MachineRole& role, bool script, Seconds notice) {
  return {.start = script && !role.server ? kScriptStart : kUsualStart, .notice = notice};
}

Expectation LocalEngine::expected(const MachineRole& role) const {
  return usual(role, options_.script.has_value(), options_.notice);
}

void LocalEngine::see(Sighting sight) {
  // Never from within a call: the caller that ordered is in the middle of something.
  loop_.post([this, here = std::weak_ptr(here_), sight = std::move(sight)] {
    if (!here.expired()) calls_.seen(sight);
  });
}

Sighting LocalEngine::sight_of(int launch, const Process& process) const {
  return {.launch = launch,
          .stage = Sighting::Stage::running,
          .where = fmt::format("pid {}", process.pid),
          .pid = process.pid,
          .age = age_of(process.started)};
}

std::vector<Sighting> LocalEngine::sights() const {
  std::vector<Sighting> all;
  for (const auto& [launch, process] : processes_) all.push_back(sight_of(launch, process));
  for (const Order& order : waiting_) all.push_back({.launch = order.launch});
  return all;
}

int LocalEngine::free_berth() const {
  std::set<int> taken;
  for (const auto& [launch, process] : processes_) taken.insert(process.berth);
  int berth = 0;
  while (taken.contains(berth)) ++berth;
  return berth;
}

int LocalEngine::berth_for(const Order& order) {
  if (order.role.server) return -1;
  if (const auto before = processes_.find(order.instead); before != processes_.end() && before->second.berth >= 0)
    return std::exchange(before->second.berth, -1);
  return free_berth();
}

void LocalEngine::order(std::span<const Order> orders) {
  for (const Order& order : orders) {
    const bool waits =
        std::any_of(waiting_.begin(), waiting_.end(), [&](const Order& other) { return other.launch == order.launch; });
    if (waits || processes_.contains(order.launch)) continue;
    if (!feels_weather(order.role)) {
      start(order);
      continue;
    }
    waiting_.push_back(order);
    see({.launch = order.launch});
    await_prices(order.role);
  }
  fill_room();
}

void LocalEngine::start(const Order& order) {
  const int berth = berth_for(order);
  const auto pid = spawn(order, berth);
  if (!pid) {
    return see({.launch = order.launch, .stage = Sighting::Stage::gone, .ending = pid.error()});
  }
  watch(order.launch, {.pid = *pid, .started = start_ticks(*pid), .berth = berth, .role = order.role});
}

tl::expected<pid_t, Ending> LocalEngine::spawn(const Order& order, int berth) const {
  const std::string log_file = log(order.launch).string();
  int ready[2];  // closed by exec; carries errno where that fails
  if (::pipe2(ready, O_CLOEXEC) != 0) return unexpected(not_started("a process", errno));
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int error = errno;
    ::close(ready[0]);
    ::close(ready[1]);
    return unexpected(not_started("a process", error));
  }
  if (pid == 0) {
    leave_files(ready[1]);
    become(berth, order, log_file);
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(ready[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(ready[1]);
  int error = 0;
  const bool failed = ::read(ready[0], &error, sizeof error) == sizeof error;
  ::close(ready[0]);
  if (!failed) return pid;
  ::waitpid(pid, nullptr, 0);
  return unexpected(not_started(options_.script ? options_.script->text : options_.program.string(), error));
}

/// In the new process; returns only where exec fails.
void LocalEngine::become(int berth, const Order& order, const std::string& log_file) const {
  const MachineRole& role = order.role;
  const std::string launch = std::to_string(order.launch);
  ::setpgid(0, 0);  // Ctrl-C is for the controller, which tells the workers
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  const auto log = open_own_file(log_file, O_WRONLY | O_CREAT | O_APPEND);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (!log || nothing < 0) return;
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log->descriptor(), STDOUT_FILENO);
  ::dup2(log->descriptor(), STDERR_FILENO);
  const auto allowed = allowed_cores();
  int threads = 1;
  // A server waits most of the time, and answers the worker that asks: any core will do. So it is with a share of a
  // core, which the kernel's scheduler deals out wherever there is room.
  if (!role.server && !role.limits.cpu_share) {
    std::vector<int> mine;
    for (const int core : berth_cores(berth, options_.capacity, static_cast<int>(allowed.size())))
      mine.push_back(allowed[static_cast<std::size_t>(core)]);
    use_cores(mine);
    threads = static_cast<int>(mine.size());
  }
  for (const ComputeSetting& setting : compute_settings(threads)) {
    const bool ours = setting.name == "OMP_NUM_THREADS";  // cores are dealt out here, whatever the user has set
    ::setenv(setting.name.c_str(), setting.value.c_str(), ours ? 1 : 0);
  }
  ::setenv("MAYFLY_TOKEN", options_.token.c_str(), 1);
  tag_this_process(options_.run, order.launch);
  if (!limit_this_process(role.limits)) return;
  const auto& life = role.limits.lifetime;
  const Seconds notice = life ? std::min(options_.notice, hand_over_time(*life) / 2) : options_.notice;
  ::setenv("MAYFLY_NOTICE_S", fmt::format("{}", notice.count()).c_str(), 1);
  if (options_.script && !role.server) return become_script(launch);
  std::vector<std::string> words{options_.program.string(), role.server ? "server" : "worker"};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  words.insert(words.end(), {"--slot", launch});
  for (std::string& word : limit_arguments(role.limits)) words.push_back(std::move(word));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(arguments[0], arguments.data());
}

/// Likewise.
void LocalEngine::become_script(const std::string& launch) const {
  const ScriptCommand& script = *options_.script;
  for (const auto& [name, value] : script.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::setenv("MAYFLY_JOIN", options_.join.c_str(), 1);
  ::setenv("MAYFLY_SLOT", launch.c_str(), 1);
  ::setenv("MAYFLY_HOST", options_.join.substr(0, options_.join.rfind(':')).c_str(), 0);
  ::setenv("PYTHONUNBUFFERED", "1", 0);
  if (::chdir(script.directory.c_str()) != 0) return;
  // The notice goes to the whole group: the shell must outlive it, or the program's hand-over would be cut short.
  const std::string text = "trap : TERM\n" + script.text;
  ::execl("/bin/sh", "sh", "-c", text.c_str(), static_cast<char*>(nullptr));
}

void LocalEngine::watch(int launch, Process process) {
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  Process& kept = processes_[launch] = std::move(process);
  see(sight_of(launch, kept));
  if (descriptor < 0) return loop_.post([this, launch] { reap(launch); });
  kept.watch = std::make_unique<DescriptorWatch>(loop_, descriptor, [this, launch] { reap(launch); });
}

void LocalEngine::reap(int launch) {
  const auto found = processes_.find(launch);
  if (found == processes_.end()) return;
  int status = 0;
  if (options_.script) end_leftovers(launch, found->second.pid);
  // An adopted process is another's child: how it ended is not known here.
  const bool child = ::waitpid(found->second.pid, &status, WNOHANG) == found->second.pid;
  Ending ending = child ? ending_of(status) : Ending{.how = "ended"};
  ending.log = log(launch).string();
  processes_.erase(found);
  kills_.erase(launch);
  see({.launch = launch, .stage = Sighting::Stage::gone, .ending = std::move(ending)});
  fill_room();
}

/// What a script has left behind; the number is its own until the dead process is waited for.
void LocalEngine::end_leftovers(int launch, pid_t machine) const {
  ::kill(-machine, SIGKILL);
  // Twice: what is just becoming another program shows no environment.
  for (const int before_ms : {0, 5}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(before_ms));
    for (const Tagged& process : tagged(options_.run)) {
      if (process.launch == launch && process.pid != machine) signal_group(process.pid, SIGKILL);
    }
  }
}

void LocalEngine::tell(int launch) {
  const auto found = processes_.find(launch);
  if (found == processes_.end()) return;
  found->second.told = true;
  signal_group(found->second.pid, SIGTERM);
}

void LocalEngine::end(int launch) {
  if (const auto found = processes_.find(launch); found != processes_.end()) signal_group(found->second.pid, SIGKILL);
  const auto waits =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const Order& order) { return order.launch == launch; });
  if (waits == waiting_.end()) return;
  waiting_.erase(waits);
  see({.launch = launch, .stage = Sighting::Stage::gone, .ending = Ending{.how = "not wanted any more"}});
}

void LocalEngine::sweep() {
  while (!waiting_.empty()) end(waiting_.front().launch);
  for (const Tagged& process : tagged(options_.run)) signal_group(process.pid, SIGKILL);
}

void LocalEngine::adopt(std::span<const Order> kept) {
  const auto there = tagged(options_.run);
  int berth = 0;
  for (const Order& order : kept) {
    const auto found = std::ranges::find_if(
        there, [&](const Tagged& process) { return process.launch == order.launch && process.machine; });
    if (found == there.end()) {
      see({.launch = order.launch,
           .stage = Sighting::Stage::gone,
           .ending = Ending{.how = "ended while nobody looked"}});
      continue;
    }
    watch(order.launch, {.pid = found->pid,
                         .started = start_ticks(found->pid),
                         .berth = order.role.server ? -1 : berth++,
                         .role = order.role});
    if (feels_weather(order.role)) await_prices(order.role);
  }
  for (const Tagged& process : there) {
    if (!processes_.contains(process.launch)) signal_group(process.pid, SIGKILL);
  }
}

pid_t LocalEngine::pid(int launch) const {
  const auto found = processes_.find(launch);
  return found == processes_.end() ? 0 : found->second.pid;
}

bool LocalEngine::feels_weather(const MachineRole& role) const {
  return options_.weather && !role.server && role.market == Market::spot;
}

bool LocalEngine::room() const {
  const int available = change_at_ > 0 ? options_.weather->changes[change_at_ - 1].available : 0;
  const auto there = std::count_if(processes_.begin(), processes_.end(), [&](const auto& entry) {
    return feels_weather(entry.second.role) && !entry.second.told;
  });
  return there < available;
}

void LocalEngine::fill_room() {
  while (!waiting_.empty() && room()) {
    const Order next = std::move(waiting_.front());
    waiting_.pop_front();
    start(next);
  }
}

void LocalEngine::schedule_weather() {
  const auto& changes = options_.weather->changes;
  if (change_at_ >= changes.size()) return;
  const Seconds at = changes[change_at_].time / options_.speed;
  weather_timer_.start(std::max(Seconds(0), at - options_.now()), [this] {
    take(options_.weather->changes[change_at_++]);
    fill_room();
    schedule_weather();
  });
}

void LocalEngine::await_prices(const MachineRole& role) {
  const bool of_trace = options_.weather->type.empty() || options_.weather->type == role.type;
  if (of_trace && !options_.weather->prices.empty() && priced_.insert(role.kind()).second)
    price_timer_.start(Seconds(0), [this] { tell_prices(); });
}

void LocalEngine::tell_prices() {
  const auto& prices = options_.weather->prices;
  const Seconds now = options_.now();
  while (price_at_ < prices.size() && prices[price_at_].time / options_.speed <= now) ++price_at_;
  for (const MachineKind& kind : priced_) {
    if (price_at_ > 0 && calls_.priced) calls_.priced(kind, prices[price_at_ - 1].price);
  }
  if (price_at_ < prices.size())
    price_timer_.start(prices[price_at_].time / options_.speed - now, [this] { tell_prices(); });
}

void LocalEngine::take(const Change& change) {
  for (int i = 0; i < change.removed; ++i) {
    std::vector<int> spot;
    for (const auto& [launch, process] : processes_) {
      if (feels_weather(process.role) && !process.told) spot.push_back(launch);
    }
    if (spot.empty()) return;
    const int victim = spot[static_cast<std::size_t>(rng_.below(static_cast<int>(spot.size())))];
    tell(victim);
    auto [timer, fresh] = kills_.try_emplace(victim, loop_);
    timer->second.start(options_.notice, [this, victim] { end(victim); });
  }
}

}  // namespace mayfly
