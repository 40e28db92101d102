#include "run/engine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "run/process.h"

namespace mayfly {
namespace {

Ending ending_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return {fmt::format("killed by signal {}", signal), signal != SIGKILL && signal != SIGTERM};
  }
  // A worker that is told to go a second time says so as a shell would, and so does the shell around a script.
  const int code = WEXITSTATUS(status);
  return {fmt::format("exit code {}", code), code != 0 && code != 128 + SIGTERM && code != 128 + SIGKILL};
}

/// Numbers of the cores this process may use: fewer than the machine has under taskset or in a container.
std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    }
  }
  return cores.empty() ? std::vector<int>{0} : cores;
}

/// This process computes with one thread, on any of these cores.
void use_one_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  ::sched_setaffinity(0, sizeof set, &set);
  ::setenv("OMP_NUM_THREADS", "1", 1);
}

/// OpenBLAS of Debian 12 does not know newer processors and would fall back to SSE3, five times slower.
const char* blas_core() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  return __builtin_cpu_supports("avx2") ? "Haswell" : nullptr;
}

/// A machine is a process and what it has started.
void signal_group(pid_t pid, int signal) {
  if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

}  // namespace

std::vector<int> seat_cores(int seat, int capacity, int cores) {
  const int each = std::max(1, cores / std::max(1, capacity));
  std::vector<int> mine;
  for (int i = 0; i < each; ++i) mine.push_back((seat * each + i) % cores);
  return mine;
}

LocalEngine::LocalEngine(Loop& loop, Options options, std::function<void(int, const Ending&)> ended)
    : loop_(loop), options_(std::move(options)), ended_(std::move(ended)) {}

std::filesystem::path LocalEngine::log(int launch) const {
  return options_.logs / fmt::format("worker-{}.log", launch);
}

int LocalEngine::free_seat() const {
  std::set<int> taken;
  for (const auto& [launch, process] : processes_) taken.insert(process.seat);
  int seat = 0;
  while (taken.contains(seat)) ++seat;
  return seat;
}

Result<void> LocalEngine::start(int launch, const MachineRole& role) {
  const int seat = role.server ? -1 : free_seat();
  const std::string log_file = log(launch).string();
  const std::string number = std::to_string(launch);
  int ready[2];  // closed by exec; carries errno where that fails
  if (::pipe2(ready, O_CLOEXEC) != 0) return fail("pipe: {}", std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int error = errno;
    ::close(ready[0]);
    ::close(ready[1]);
    return fail("cannot start a process: {}", std::strerror(error));
  }
  if (pid == 0) {
    become(seat, role, log_file, number);
    const int error = errno;
    [[maybe_unused]] const auto written = ::write(ready[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(ready[1]);
  int error = 0;
  const bool failed = ::read(ready[0], &error, sizeof error) == sizeof error;
  ::close(ready[0]);
  if (failed) {
    ::waitpid(pid, nullptr, 0);
    return fail("{}: cannot start: {}", options_.program.string(), std::strerror(error));
  }
  watch(launch, {.pid = pid, .started = start_ticks(pid), .seat = seat, .role = role});
  return {};
}

/// In the new process; returns only where exec fails.
void LocalEngine::become(int seat, const MachineRole& role, const std::string& log_file,
                         const std::string& launch) const {
  ::setpgid(0, 0);  // Ctrl-C is for the controller, which tells the workers
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (log < 0 || nothing < 0) return;
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  const auto allowed = allowed_cores();
  if (role.server) {
    // It waits most of the time, and answers whoever asks: any core will do.
    ::setenv("OMP_NUM_THREADS", "1", 1);
  } else {
    const auto mine = seat_cores(seat, options_.capacity, static_cast<int>(allowed.size()));
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : mine) CPU_SET(static_cast<std::size_t>(allowed[static_cast<std::size_t>(core)]), &set);
    ::sched_setaffinity(0, sizeof set, &set);
    ::setenv("OMP_NUM_THREADS", std::to_string(mine.size()).c_str(), 1);
  }
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
  if (const char* core = blas_core()) ::setenv("OPENBLAS_CORETYPE", core, 0);
  ::setenv("MAYFLY_TOKEN", options_.token.c_str(), 1);
  // Shares of a core are dealt out by the kernel's scheduler, wherever there is room.
  if (role.limits.cpu_share) use_one_of(allowed);
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
  ::setenv("PYTHONUNBUFFERED", "1", 0);
  if (::chdir(script.directory.c_str()) != 0) return;
  // The notice goes to the whole group: the shell must outlive it, or the program's hand-over would be cut short.
  const std::string text = "trap : TERM\n" + script.text;
  ::execl("/bin/sh", "sh", "-c", text.c_str(), static_cast<char*>(nullptr));
}

void LocalEngine::watch(int launch, Process process) {
  const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  Process& kept = processes_[launch] = std::move(process);
  if (descriptor < 0) return loop_.post([this, launch] { reap(launch); });
  kept.watch = std::make_unique<DescriptorWatch>(loop_, descriptor, [this, launch] { reap(launch); });
}

void LocalEngine::reap(int launch) {
  const auto found = processes_.find(launch);
  if (found == processes_.end()) return;
  int status = 0;
  // What a script has left behind; the number is its own until the dead process is waited for.
  if (options_.script) ::kill(-found->second.pid, SIGKILL);
  // An adopted process is another's child: how it ended is not known here.
  const bool child = ::waitpid(found->second.pid, &status, WNOHANG) == found->second.pid;
  processes_.erase(found);
  ended_(launch, child ? ending_of(status) : Ending{.how = "ended"});
}

void LocalEngine::notify(int launch) {
  if (const auto found = processes_.find(launch); found != processes_.end()) signal_group(found->second.pid, SIGTERM);
}

void LocalEngine::kill(int launch) {
  if (const auto found = processes_.find(launch); found != processes_.end()) signal_group(found->second.pid, SIGKILL);
}

void LocalEngine::vacate(int launch) {
  if (const auto found = processes_.find(launch); found != processes_.end()) found->second.seat = -1;
}

void LocalEngine::kill_all() {
  for (const auto& [launch, process] : processes_) signal_group(process.pid, SIGKILL);
}

pid_t LocalEngine::pid(int launch) const {
  const auto found = processes_.find(launch);
  return found == processes_.end() ? 0 : found->second.pid;
}

Seconds LocalEngine::age(int launch) const {
  const auto found = processes_.find(launch);
  timespec now{};
  if (found == processes_.end() || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return Seconds(0);
  const double started = static_cast<double>(found->second.started) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Seconds(std::max(0.0, static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started));
}

std::vector<int> LocalEngine::launches() const {
  std::vector<int> all;
  for (const auto& [launch, process] : processes_) all.push_back(launch);
  return all;
}

Json LocalEngine::processes() const {
  Json list = Json::array();
  for (const auto& [launch, process] : processes_) {
    list.push_back({{"slot", launch},
                    {"pid", process.pid},
                    {"started", process.started},
                    {"seat", process.seat},
                    {"type", process.role.type},
                    {"market", name(process.role.market)},
                    {"usd_per_hour", process.role.price.value},
                    {"server", process.role.server},
                    {"batch", process.role.batch},
                    {"limits", limits_json(process.role.limits)}});
  }
  return list;
}

void LocalEngine::adopt(const Json& processes) {
  for (const auto& entry : processes) {
    const pid_t pid = entry.value("pid", 0);
    const auto started = entry.value("started", 0LL);
    if (pid <= 0 || started == 0 || start_ticks(pid) != started) continue;
    const auto market = parse_market(entry.value("market", ""));
    watch(entry.value("slot", 0), {.pid = pid,
                                   .started = started,
                                   .seat = entry.value("seat", 0),
                                   .role = {.type = entry.value("type", ""),
                                            .market = market ? *market : Market::spot,
                                            .price = {entry.value("usd_per_hour", 0.0)},
                                            .server = entry.value("server", false),
                                            .batch = entry.value("batch", 0),
                                            .limits = limits_from(entry.value("limits", Json::object()))}});
  }
}

}  // namespace mayfly
