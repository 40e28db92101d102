// Whether promises are kept: on the generator, and, forecast from the past only, on recorded traces. docs/benchmarks.md
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/rng.h"
#include "simulate/risk.h"
#include "support/problems.h"
#include "trace/generate.h"
#include "trace/load.h"

using namespace mayfly;
namespace fs = std::filesystem;

namespace {

/// A job that `machines` do in its planned time, and fewer in proportion: pace 1 while all are there.
Course proportional_course(const Trace& trace, int machines, Seconds recovery) {
  const PlanOption option{.cluster = {{.type = trace.series.front().type, .market = Market::spot, .count = machines}}};
  Scene scene = *scene_of(option, trace);
  scene.pace = [&](const std::vector<int>& counts) { return counts[0] / static_cast<double>(machines); };
  const Shapes shapes = unmeasured_job(machines).shapes;
  const Job job{.shapes = shapes, .costs = MigrationCosts::constant(shapes, recovery)};
  return course_of(scene, job, {.policy = PolicyName::persist}, 1);
}

constexpr double kPlanned = 4 * 3600;
constexpr Seconds kRecovery{60};

Trace generated(const Preset& preset, Seconds duration, std::uint64_t seed) {
  GeneratorOptions options = preset.options;
  options.duration = duration;
  options.seed = seed;
  return *generated_trace(options);
}

/// The deadline that `course` promises with 90 %. Windows are cut to hold the deadline, so it is looked for in rounds.
double promised_deadline(const Course& course, double relative_sd, int windows) {
  double deadline = 2 * kPlanned;
  for (int round = 0; round < 3; ++round) {
    const RiskQuestion question{
        .work = kPlanned, .deadline = Seconds(deadline), .planned = Seconds(kPlanned), .relative_sd = relative_sd};
    std::vector<double> times;
    for (const WindowRun& run : window_runs(course, question, {.windows = windows})) times.push_back(run.time);
    const auto at = static_cast<std::ptrdiff_t>(0.9 * static_cast<double>(times.size()));
    std::nth_element(times.begin(), times.begin() + at, times.end());
    deadline = times[static_cast<std::size_t>(at)];
  }
  return deadline;
}

/// Share of `windows` side by side in which the job ends in time.
double kept(const Course& course, double deadline, double relative_sd, int windows) {
  Rng rng(99);
  int in_time = 0;
  const double span = course.duration() / windows;
  for (int i = 0; i < windows; ++i) {
    const double work = kPlanned * std::exp(relative_sd * rng.normal());
    const auto reached = course.reached(i * span, work);
    in_time += reached && *reached - i * span <= deadline ? 1 : 0;
  }
  return in_time / static_cast<double>(windows);
}

void calibrate() {
  constexpr int kWindows = 10'000;
  const Seconds enough(kWindows * kPlanned * 2.5);
  fmt::print(
      "A job of 4 h on all of a preset's machines, promised at 90 %, tried on {} other windows side by side:\n\n"
      "| preset | prediction's error | deadline | promised | kept | kept, promised from 14 days (20 traces: mean, "
      "least, "
      "most) |\n| --- | --- | --- | --- | --- | --- |\n",
      kWindows);
  for (const Preset& preset : presets()) {
    const int machines = preset.options.machines;
    const Course learned = proportional_course(generated(preset, enough, 1), machines, kRecovery);
    const Course tried = proportional_course(generated(preset, enough, 2), machines, kRecovery);
    for (const double sd : {0.0, 0.1}) {
      const double deadline = promised_deadline(learned, sd, 4 * kWindows);
      const Risk risk = assess(
          learned, {.work = kPlanned, .deadline = Seconds(deadline), .planned = Seconds(kPlanned), .relative_sd = sd},
          {.windows = 4 * kWindows, .seed = 7});
      fmt::print("| {} | {:.0f} % | {:.3f} h | {:.2f} % | {:.2f} % |", preset.name, 100 * sd, deadline / 3600,
                 100 * risk.in_time->middle, 100 * kept(tried, deadline, sd, kWindows));
      double sum = 0;
      double least = 1;
      double most = 0;
      constexpr int kShort = 20;
      for (int i = 0; i < kShort; ++i) {
        const Trace short_one = generated(preset, Seconds(Hours(24 * 14)), static_cast<std::uint64_t>(100 + i));
        const double at = promised_deadline(proportional_course(short_one, machines, kRecovery), sd, 4000);
        const double share = kept(tried, at, sd, kWindows);
        sum += share / kShort;
        least = std::min(least, share);
        most = std::max(most, share);
      }
      fmt::print(" {:.1f}, {:.1f}, {:.1f} % |\n", 100 * sum, 100 * least, 100 * most);
    }
  }
}

/// Squared errors of one block of one series, a day or less: ours, of the past's base rate, of the windows' own.
using Errors = std::array<double, 3>;

struct Verdict {
  std::vector<Errors> blocks{};
  int questions = 0;
  long forecasts = 0;
};

struct Forecast {
  double time = 0;
  double ours = 0;
  double past = 0;
  double outcome = 0;
};

/// Fewer windows side by side than this are an anecdote.
constexpr double kFewest = 4;

/// Will a job of `share` of what n machines do in the horizon be done in it? Asked over and over, from the past only.
std::vector<Forecast> forecasts(const Course& course, double horizon, double share) {
  const double known = std::max({course.duration() / 4, horizon, 7200.0});
  const double step = horizon / 6;
  std::vector<Forecast> all;
  if (course.duration() < kFewest * horizon) return all;
  const RiskQuestion question{
      .work = share * horizon, .deadline = Seconds(horizon), .planned = Seconds(share * horizon)};
  const auto outcome = [&](double from) {
    const auto reached = course.reached(from, question.work);
    return reached && *reached <= from + horizon ? 1.0 : 0.0;
  };
  // One window of even chances to begin with, so that a base rate of few windows is not 0 or 1.
  double ended = horizon / step;
  double in_time = ended / 2;
  double next = 0;
  for (double now = known; now + horizon <= course.duration(); now += step) {
    for (; next + horizon <= now; next += step) {
      in_time += outcome(next);
      ended += 1;
    }
    const Risk risk = assess(course, question, {.windows = 400, .now = Seconds(now)});
    all.push_back({now, risk.in_time->middle, in_time / ended, outcome(now)});
  }
  return all;
}

void ask(const Trace& trace, double horizon, Verdict& verdict) {
  int most = 0;
  for (const Change& change : trace.series.front().changes) most = std::max(most, change.available);
  std::map<long, Errors> blocks;
  const double block = std::max(horizon, std::min(86400.0, trace.duration.count() / 8));
  std::vector<int> sizes{most, most / 2, most / 4};
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::erase(sizes, 0);
  for (const int machines : sizes) {
    const Course course = proportional_course(trace, machines, Seconds(0));
    for (const double share : {0.25, 0.5, 0.75, 0.95}) {
      const auto answers = forecasts(course, horizon, share);
      double base = 0;
      for (const Forecast& one : answers) base += one.outcome / static_cast<double>(answers.size());
      if (answers.empty() || base < 0.02 || base > 0.98) continue;
      ++verdict.questions;
      verdict.forecasts += static_cast<long>(answers.size());
      for (const Forecast& one : answers) {
        Errors& errors = blocks[std::lround(std::floor(one.time / block))];
        const std::array<double, 3> guesses{one.ours, one.past, base};
        for (std::size_t i = 0; i < guesses.size(); ++i)
          errors[i] += (guesses[i] - one.outcome) * (guesses[i] - one.outcome);
      }
    }
  }
  for (const auto& [number, errors] : blocks) verdict.blocks.push_back(errors);
}

double skill(const std::vector<Errors>& blocks, std::size_t against) {
  double ours = 0;
  double base = 0;
  for (const Errors& errors : blocks) {
    ours += errors[0];
    base += errors[against];
  }
  return 1 - ours / base;
}

void report(const std::string& what, double horizon, const Verdict& verdict) {
  if (verdict.blocks.empty()) {
    fmt::print("| {} | {:.0f} h | 0 | 0 | - | - | - |\n", what, horizon / 3600);
    return;
  }
  Rng rng(1);
  std::vector<double> drawn;
  for (int i = 0; i < 1000; ++i) {
    std::vector<Errors> blocks;
    for (std::size_t k = 0; k < verdict.blocks.size(); ++k)
      blocks.push_back(verdict.blocks[static_cast<std::size_t>(rng.below(static_cast<int>(verdict.blocks.size())))]);
    drawn.push_back(skill(blocks, 1));
  }
  std::sort(drawn.begin(), drawn.end());
  fmt::print("| {} | {:.0f} h | {} | {} | {:+.1f} % | {:+.1f} .. {:+.1f} % | {:+.1f} % |\n", what, horizon / 3600,
             verdict.questions, verdict.forecasts, 100 * skill(verdict.blocks, 1), 100 * drawn[50], 100 * drawn[949],
             100 * skill(verdict.blocks, 2));
}

int recorded(const std::vector<fs::path>& files) {
  std::vector<Trace> traces;
  for (const fs::path& file : files) {
    const auto trace = load_trace(file);
    if (!trace) {
      fmt::print(stderr, "{}\n", trace.error().message);
      return 2;
    }
    for (const Series& series : trace->series) {
      Trace one = *trace;
      one.series = {series};
      one.name = file.stem().string() + (series.zone.empty() ? "" : " " + series.zone);
      traces.push_back(std::move(one));
    }
  }
  fmt::print(
      "\nBrier skill of forecasts made from the past only, over the past's base rate (and its 5 .. 95 % when days are "
      "drawn anew) and "
      "over that of the windows themselves:\n\n| trace | horizon | questions | forecasts | skill | 5 .. 95 % | over "
      "the "
      "windows' own rate |\n| --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Observation kind : {Observation::held, Observation::probe}) {
    for (const double hours : {1.0, 4.0, 12.0}) {
      Verdict pooled;
      for (const Trace& trace : traces) {
        if (trace.observation != kind) continue;
        Verdict verdict;
        ask(trace, 3600 * hours, verdict);
        report(trace.name, 3600 * hours, verdict);
        pooled.blocks.insert(pooled.blocks.end(), verdict.blocks.begin(), verdict.blocks.end());
        pooled.questions += verdict.questions;
        pooled.forecasts += verdict.forecasts;
      }
      report(fmt::format("**{}, pooled**", name(kind)), 3600 * hours, pooled);
    }
  }
  return 0;
}

}  // namespace

/// risk [generator|recorded] [FILE...]: without files, those of ../shared/data, if this checkout has them.
int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "all";
  std::vector<fs::path> files(argv + std::min(argc, 2), argv + argc);
  const auto data = support::shared_data();
  if (files.empty() && data) {
    for (const char* file :
         {"bamboo/p3-trace.csv", "bamboo/g4dn-trace.csv", "bamboo/gcloud-v100x1-east1c.txt", "skynomad/h100-16.csv",
          "skynomad/v100-1-us-east-1a.csv", "skynomad/v100-1-us-east-2a.csv", "skynomad/v100-1-us-west-2b.csv"})
      files.push_back(*data / "traces" / file);
  }
  if (part != "recorded") calibrate();
  return part != "generator" ? recorded(files) : 0;
}
