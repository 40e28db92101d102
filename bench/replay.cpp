// Every policy on every trace: who trained how much, and how long the replay took. docs/benchmarks.md
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "simulate/replay.h"
#include "support/problems.h"
#include "trace/generate.h"
#include "trace/load.h"

using namespace mayfly;
using namespace mayfly::support;
namespace fs = std::filesystem;

namespace {

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Weathered {
  std::string name{};
  Series series{};
  Seconds duration{};
  Seconds interval{};
};

/// One entry per zone of every trace below the folder; other models' copies of a trace are left out.
std::vector<Weathered> traces_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (entry.is_regular_file() && extension != ".md") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Weathered> all;
  for (const fs::path& file : files) {
    const auto trace = load_trace(file);
    if (!trace) {
      fmt::print(stderr, "left out: {}\n", trace.error().message);
      continue;
    }
    for (const Series& series : trace->series) {
      const bool known = std::any_of(all.begin(), all.end(),
                                     [&](const Weathered& other) { return other.series.changes == series.changes; });
      if (known) continue;
      const std::string zone = trace->series.size() > 1 ? " " + series.zone : "";
      all.push_back({file.stem().string() + zone, series, trace->duration, std::max(Seconds(60), trace->gap)});
    }
  }
  return all;
}

Job job_of(const std::string& profile, bool uneven = false, Spares spares = Spares::cold) {
  return *make_job(shipped_profile(profile), shipped_catalog("default"),
                   {.uneven = uneven, .migration = {.spares = spares}});
}

double share(const Weathered& w, const Job& job, ReplayOptions options, double ideal, bool by_interval = false) {
  options.interval = w.interval;
  const auto run =
      by_interval ? replay_by_interval(w.series, w.duration, job, options) : replay(w.series, w.duration, job, options);
  return 100 * run.samples / ideal;
}

/// Shares of the ideal of even pipelines, in percent.
void shares(const std::string& profile, const std::vector<Weathered>& traces) {
  const Job even = job_of(profile);
  const Job uneven = job_of(profile, true);
  const Job warm = job_of(profile, false, Spares::warm);
  const Job both = job_of(profile, true, Spares::warm);
  fmt::print("\n{}, samples as % of ideal (even pipelines, no cost for changes)\n\n", profile);
  fmt::print(
      "| trace | checkpoint | redundant | template | reactive | persist blind | liveput blind | parcae blind | "
      "persist | **liveput** | oracle, 12 ahead | whole trace known | liveput uneven | liveput warm | both |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Weathered& w : traces) {
    const double ideal = replay(w.series, w.duration, even, {.policy = PolicyName::ideal}).samples;
    if (ideal <= 0) {
      fmt::print("| {} | not scored: never {} machines at once |\n", w.name, even.shapes.least_machines());
      continue;
    }
    fmt::print("| {}", w.name);
    for (const PolicyName policy :
         {PolicyName::checkpoint, PolicyName::redundant, PolicyName::template_, PolicyName::reactive})
      fmt::print(" | {:.2f}", share(w, even, {.policy = policy}, ideal));
    const ReplayOptions blind{.sight = Sight::blind};
    ReplayOptions blind_persist = blind;
    blind_persist.policy = PolicyName::persist;
    ReplayOptions blind_parcae = blind;
    blind_parcae.foresight = Foresight::parcae;
    ReplayOptions oracle = blind;
    oracle.foresight = Foresight::oracle;
    fmt::print(" | {:.2f} | {:.2f} | {:.2f}", share(w, even, blind_persist, ideal, true),
               share(w, even, blind, ideal, true), share(w, even, blind_parcae, ideal, true));
    fmt::print(" | {:.2f} | **{:.2f}**", share(w, even, {.policy = PolicyName::persist}, ideal),
               share(w, even, {}, ideal));
    fmt::print(" | {:.2f} | {:.2f}", share(w, even, oracle, ideal, true),
               100 * offline_optimum(w.series, w.duration, even, w.interval) / ideal);
    fmt::print(" | {:.2f} | {:.2f} | {:.2f} |\n", share(w, uneven, {}, ideal), share(w, warm, {}, ideal),
               share(w, both, {}, ideal));
    std::fflush(stdout);
  }
}

constexpr PolicyName kControlled[] = {PolicyName::on_demand, PolicyName::checkpoint, PolicyName::redundant,
                                      PolicyName::template_, PolicyName::reactive,   PolicyName::persist,
                                      PolicyName::liveput,   PolicyName::ideal};

void speeds(const std::vector<Weathered>& traces) {
  const auto two_weeks = *generated_trace({.machines = 16, .duration = Hours(14 * 24), .seed = 1});
  const Weathered generated{"generated, 16 machines, 14 days", two_weeks.series[0], two_weeks.duration, Seconds(60)};
  std::vector<Weathered> long_ones{generated};
  for (const Weathered& w : traces) {
    if (w.name.starts_with("h100")) long_ones.push_back(w);
  }
  fmt::print("\nTime of one replay, ms (BERT; best of 5; the tables of migration costs are filled by the first)\n\n");
  fmt::print("| trace | changes");
  for (const PolicyName policy : kControlled) fmt::print(" | {}", name(policy));
  fmt::print(" |\n| --- | ---");
  for (std::size_t i = 0; i < std::size(kControlled); ++i) fmt::print(" | ---");
  fmt::print(" |\n");
  for (const Weathered& w : long_ones) {
    const Job job = job_of("parcae-bert");
    fmt::print("| {} | {}", w.name, w.series.changes.size());
    for (const PolicyName policy : kControlled) {
      double best = 1e300;
      for (int i = 0; i < 5; ++i) {
        best = std::min(
            best, seconds_of([&] { replay(w.series, w.duration, job, {.policy = policy, .interval = w.interval}); }));
      }
      fmt::print(" | {:.2f}", 1e3 * best);
    }
    fmt::print(" |\n");
  }
  const double all = seconds_of([&] {
    for (const auto* profile : {"parcae-bert", "parcae-resnet152"}) {
      const Job job = job_of(profile);
      for (const Weathered& w : traces) {
        for (const PolicyName policy : kControlled)
          replay(w.series, w.duration, job, {.policy = policy, .interval = w.interval});
      }
    }
  });
  fmt::print("\nAll {} policies x {} traces x 2 models, tables cold: {:.2f} s\n", std::size(kControlled), traces.size(),
             all);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Weathered> traces;
  if (const auto shared = shared_data()) {
    traces = traces_of(*shared / "traces");
  } else {
    fmt::print("no recorded traces here: shipped ones only\n");
  }
  const auto recorded = traces.size();
  for (const Weathered& w : traces_of(fs::path(MAYFLY_SOURCE_DIR) / "data" / "traces")) traces.push_back(w);
  fmt::print("{} recorded series and {} generated ones\n", recorded, traces.size() - recorded);
  const bool only_speed = argc > 1 && std::string_view(argv[1]) == "speed";
  if (!only_speed) {
    shares("parcae-bert", traces);
    shares("parcae-resnet152", traces);
  }
  speeds(traces);
}
