// light_workers updates [WINDOWS] [SECONDS] [MOST]: what an update through parameter servers costs, for 1, 2, 4 ...
// MOST workers that compute nothing, against a real controller and a real server; beside them the same bytes as round
// trips over plain TCP to one process, window by window in turns, so that a busy machine slows both alike.
//
// light_workers joins [WORKERS] [ROUNDS]: how fast the controller takes workers in and counts them out, and how long it
// lets a heartbeat wait meanwhile.
//
// Programs are taken from the folder above this one's, or from MAYFLY_PROGRAMS.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "light_crew.h"
#include "light_run.h"

namespace {

using namespace mayfly;
using namespace mayfly::bench;

double since(Clock::time_point start) { return Seconds(Clock::now() - start).count(); }

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

struct Window {
  double update_us = 0;  ///< wall time
  double cpu_us = 0;     ///< of the controller, an update
  double server_us = 0;  ///< of the server, an update
  double plain_us = 0;   ///< wall time of a lease's three round trips over plain TCP
  double lease_us = 0;   ///< wall time a lease
};

/// One window of each.
Window window(Run& run, LightCrew& crew, Poller& poller, PlainTcp& plain, double seconds) {
  const auto train = [&](double most) {
    auto beaten = Clock::now();
    poller.run(Seconds(most), [&] {
      if (since(beaten) > 0.1) {
        crew.beat();
        beaten = Clock::now();
      }
      return false;
    });
  };
  Window seen{.plain_us = 1e6 * plain.seconds_per_cycle(seconds / 3)};
  train(0.2);
  const auto start = Clock::now();
  const auto sample = crew.sample();
  const auto leases = crew.leases();
  const double cpu = run.controller_cpu();
  const double server = run.server_cpu();
  train(seconds);
  const double took = since(start);
  const double updates = static_cast<double>(crew.sample() - sample) / Run::kBatch;
  seen.update_us = 1e6 * took / updates;
  seen.lease_us = 1e6 * took / static_cast<double>(crew.leases() - leases);
  seen.cpu_us = 1e6 * (run.controller_cpu() - cpu) / updates;
  seen.server_us = 1e6 * (run.server_cpu() - server) / updates;
  return seen;
}

void measure_updates(const std::string& sync, int workers, int windows, double seconds) {
  Run run({.sync = sync, .workers = workers, .most = workers});
  Poller poller;
  LightCrew crew(poller, {.address = run.address(), .credentials = run.credentials()});
  for (int i = 0; i < workers; ++i) crew.join();
  const bool begun = poller.run(Seconds(30), [&] { return crew.leases() > 20 * workers; });
  MAYFLY_CHECK(begun, "training did not begin");
  PlainTcp plain(workers, {{40, 4040}, {4040, 40}, {crew.pushed_bytes(), crew.lease_bytes()}});
  std::vector<double> update, lease, cpu, server, raw, ratio;
  for (int i = 0; i < windows; ++i) {
    const Window seen = window(run, crew, poller, plain, seconds);
    update.push_back(seen.update_us);
    lease.push_back(seen.lease_us);
    cpu.push_back(seen.cpu_us);
    server.push_back(seen.server_us);
    raw.push_back(seen.plain_us);
    ratio.push_back(seen.lease_us / seen.plain_us);
  }
  MAYFLY_CHECK(crew.refused() == 0, "nobody is sent away");
  fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.1f} |\n", sync, workers,
             quantile(update, 0), quantile(update, 0.5), quantile(cpu, 0), quantile(cpu, 0.5), quantile(server, 0.5),
             quantile(lease, 0.5), quantile(raw, 0.5), quantile(ratio, 0.5));
  std::fflush(stdout);
}

void updates(int windows, double seconds, int most) {
  fmt::print("{} windows of {} s; load average {}\n\n", windows, seconds, load_average());
  fmt::print(
      "| sync | workers | us an update: best | median | controller's CPU: best | median | server's CPU | us a lease | "
      "plain TCP | ratio |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const std::string sync : {"asp", "bsp"}) {
    for (int workers = 1; workers <= most; workers *= 2) measure_updates(sync, workers, windows, seconds);
  }
  fmt::print("\nload average {}\n", load_average());
}

/// Sends heartbeats over a connection of its own, one after another, and times the answers.
class Pulse {
 public:
  Pulse(const std::string& address, const Credentials& credentials) : socket_(connected_to(address, credentials)) {
    send_all(socket_, framed(encoded<ToController>(Hello{.pid = ::getpid()})));
    thread_ = std::thread([this] { live(); });
  }
  ~Pulse() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Pulse(const Pulse&) = delete;

  /// Milliseconds, since the last call.
  std::vector<double> latencies() {
    const std::lock_guard lock(mutex_);
    return std::exchange(latencies_, {});
  }

 private:
  /// Waits for a message; false at the end of the connection.
  template <class M>
  bool await() {
    while (true) {
      auto frame = frames_.next();
      if (frame && *frame) {
        const auto message = decoded<ToMember>(**frame);
        if (message && std::holds_alternative<M>(*message)) return true;
        continue;
      }
      char buffer[4096];
      const auto size = ::recv(socket_, buffer, sizeof buffer, 0);
      if (size <= 0) return false;
      frames_.take({buffer, static_cast<std::size_t>(size)});
    }
  }
  void live() {
    if (!await<Welcome>()) return;
    while (true) {
      const auto start = Clock::now();
      send_all(socket_, framed(encoded<ToController>(Alive{})));
      if (!await<Alive>()) return;
      {
        const std::lock_guard lock(mutex_);
        latencies_.push_back(1e3 * since(start));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  int socket_;
  FrameReader frames_{};
  std::mutex mutex_{};
  std::vector<double> latencies_{};
  std::thread thread_{};
};

/// What happens to a crowd, in one run.
class Crowd {
 public:
  explicit Crowd(int workers)
      : workers_(workers),
        run_({.sync = "asp", .workers = std::min(workers, 1024), .most = 3 * workers}),
        crew_(poller_, {.address = run_.address(), .credentials = run_.credentials(), .trains = false}),
        pulse_(run_.address(), run_.credentials()) {}

  void rest(const char* what) {
    begin();
    wait(Seconds(2), [] { return false; });
    tell(what, 0, 2);
  }
  void come() {
    begin();
    const auto before = crew_.leases();
    for (int i = 0; i < workers_; ++i) {
      crew_.join();
      bool looked = false;
      if (i % 16 == 15) poller_.run(Seconds(1), [&] { return std::exchange(looked, true); });
    }
    const bool all = wait(Seconds(60), [&] { return crew_.leases() - before >= workers_; });
    MAYFLY_CHECK(all, "everyone has a lease");
    tell("join", workers_, since(start_));
  }
  void vanish() {
    const int before = run_.lost();
    begin();
    for (int i = 0; i < workers_; ++i) crew_.vanish();
    auto asked = Clock::now();
    const bool all = wait(Seconds(60), [&] {
      if (since(asked) < 0.2) return false;  // reading the journal takes a while
      asked = Clock::now();
      return run_.lost() - before >= workers_;
    });
    MAYFLY_CHECK(all, "everyone is counted out");
    tell("vanish", workers_, run_.span_of_losses(workers_));
  }
  /// So many a second go, and others come.
  void churn(int rate, double seconds) {
    begin();
    const auto before = crew_.leases();
    int turned = 0;
    wait(Seconds(seconds), [&] {
      for (; turned < rate * since(start_); ++turned) {
        crew_.vanish();
        crew_.join();
      }
      return false;
    });
    const double took = since(start_);
    const auto away = static_cast<std::int64_t>(crew_.refused());
    const bool all = wait(Seconds(60), [&] { return crew_.leases() - before + away >= turned; });
    MAYFLY_CHECK(all, "newcomers have leases");
    tell("vanish and join", turned, took);
  }
  std::size_t refused() const { return crew_.refused(); }

 private:
  bool wait(Seconds most, const std::function<bool()>& done) {
    return poller_.run(most, [&] {
      if (since(beaten_) > 0.02) {
        crew_.beat();
        beaten_ = Clock::now();
      }
      return done();
    });
  }
  void begin() {
    pulse_.latencies();
    cpu_ = run_.controller_cpu();
    start_ = Clock::now();
  }
  void tell(const char* what, int count, double seconds) {
    const double cpu = run_.controller_cpu() - cpu_;
    const auto waited = pulse_.latencies();
    const std::string each = count > 0 ? fmt::format("{:.0f} | {:.0f}", count / seconds, 1e6 * cpu / count)
                                       : fmt::format("- | {:.1f} % of a core", 100 * cpu / seconds);
    fmt::print("| {} | {} | {} | {:.2f} | {:.2f} | {:.1f} | {:.1f} |\n", what, crew_.here(), each,
               quantile(waited, 0.5), quantile(waited, 0.99), quantile(waited, 1), run_.controller_mb());
    std::fflush(stdout);
  }

  const int workers_;
  Run run_;
  Poller poller_{};
  LightCrew crew_;
  Pulse pulse_;
  Clock::time_point start_{}, beaten_{};
  double cpu_ = 0;
};

void joins(int workers, int rounds) {
  fmt::print("load average {}\n\n", load_average());
  fmt::print(
      "| what | workers after | a second | controller's CPU us each | heartbeat answered in ms: p50 | p99 | most | "
      "controller MB |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  Crowd crowd(workers);
  crowd.rest("nothing");
  for (int round = 0; round < rounds; ++round) {
    crowd.come();
    crowd.rest("heartbeats");
    crowd.vanish();
  }
  crowd.come();
  crowd.churn(std::max(1, workers / 5), 5);
  fmt::print("\n{} sent away; load average {}\n", crowd.refused(), load_average());
}

}  // namespace

int main(int argc, char** argv) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int at, double otherwise) { return argc > at ? std::atof(argv[at]) : otherwise; };
  if (what == "updates") {
    updates(static_cast<int>(number(2, 5)), number(3, 1), static_cast<int>(number(4, 64)));
  } else if (what == "joins") {
    joins(static_cast<int>(number(2, 1000)), static_cast<int>(number(3, 3)));
  } else {
    fmt::print(stderr, "light_workers: want updates or joins\n");
    return 2;
  }
}
