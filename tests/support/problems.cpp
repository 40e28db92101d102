#include "support/problems.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "plan/planner.h"

namespace mayfly::support {
namespace {

const std::array<std::string, 5> kPaperOrder{"p3.2xlarge", "g4dn.4xlarge", "g3.8xlarge", "g3.16xlarge", "p2.8xlarge"};

std::size_t kind_named(const Problem& problem, const std::string& name) {
  for (std::size_t k = 0; k < problem.kinds.size(); ++k) {
    if (problem.kinds[k].name == name) return k;
  }
  return problem.kinds.size();
}

double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) / 9007199254740992.0;
}

}  // namespace

Profile shipped_profile(const std::string& name) {
  auto profile = load_profile(std::filesystem::path(MAYFLY_SOURCE_DIR) / "data/profiles" / (name + ".json"));
  MAYFLY_CHECK(profile.has_value(), profile ? "" : profile.error().message.c_str());
  return *profile;
}

WeatherTable shipped_weather() {
  auto weather = load_weather(std::filesystem::path(MAYFLY_SOURCE_DIR) / "data" / "weather.yaml");
  MAYFLY_CHECK(weather.has_value(), weather ? "" : weather.error().message.c_str());
  return *weather;
}

Catalog shipped_catalog(const std::string& name) {
  const auto data = std::filesystem::path(MAYFLY_SOURCE_DIR) / "data";
  auto catalog = load_catalog(data / "catalogs" / (name + ".yaml"), load_catalog(data / "gpus.yaml").value());
  MAYFLY_CHECK(catalog.has_value(), catalog ? "" : catalog.error().message.c_str());
  return *catalog;
}

std::optional<std::filesystem::path> shared_data() {
  const auto path = std::filesystem::path(MAYFLY_SOURCE_DIR) / ".." / "shared" / "data";
  return std::filesystem::exists(path) ? std::optional(path) : std::nullopt;
}

SpotDnn spotdnn_problem(const std::vector<int>& quotas, double loss, double deadline_s) {
  SpotDnn made{.profile = std::make_unique<Profile>(shipped_profile("spotdnn-resnet110")),
               .catalog = shipped_catalog("spotdnn")};
  PlanRequest request{.target = ToLoss{loss}, .deadline = Seconds(deadline_s), .predictor = Predictor::spotdnn};
  for (std::size_t i = 0; i < quotas.size(); ++i) request.quota.push_back({kPaperOrder[i], quotas[i]});
  auto problems = make_problems(*made.profile, made.catalog, request);
  MAYFLY_CHECK(problems && problems->problems.size() == 1, "the spotDNN evaluation is one problem");
  made.problem = problems->problems.front();
  return made;
}

std::vector<int> spotdnn_counts(const Problem& problem, const std::vector<int>& order) {
  std::vector<int> counts(problem.kinds.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto k = kind_named(problem, kPaperOrder[i]);
    if (k < counts.size()) counts[k] = order[i];
  }
  return counts;
}

std::vector<int> paper_order(const Problem& problem, const std::vector<int>& counts) {
  std::vector<int> order;
  for (const auto& name : kPaperOrder) {
    const auto k = kind_named(problem, name);
    order.push_back(k < counts.size() ? counts[k] : 0);
  }
  return order;
}

Problem random_problem(const RandomProblem& shape, std::uint64_t seed, Profile& profile) {
  std::mt19937_64 random(seed);
  profile = shipped_profile("spotdnn-resnet110");
  profile.loss->batch_min = 0;
  profile.loss->batch_max = 1e300;
  profile.sync = shape.sync;
  profile.server.in_turn = shape.in_turn;
  if (shape.ring) profile.exchange = Exchange::all_reduce;
  if (shape.batch > 0) profile.batch = shape.batch;
  profile.scale_batch = shape.scale_batch;
  profile.most_batch = shape.most_batch;
  profile.cynthia = CynthiaProfile{.work_gflop = uniform(random, 500, 2000)};
  if (shape.five_coefficients) profile.loss->cc_offset = uniform(random, 0.1, 1);
  Problem problem{.profile = &profile, .job = make_workload(profile), .predictor = shape.predictor};
  problem.target =
      shape.epochs ? Target(ForEpochs{std::floor(uniform(random, 5, 50))}) : Target(ToLoss{uniform(random, 0.7, 1.2)});
  for (int k = 0; k < shape.kinds; ++k) {
    const double gpus = std::exp2(std::floor(uniform(random, 0, 3)));
    const double speed = uniform(random, 400, 2200);
    Worker worker{.batch = 1024 * gpus, .nic = 1e9};
    worker.rate = 142e6;
    worker.pcie = 2 * gpus * 11.5e6 / 10e9;
    worker.compute = worker.batch / speed - 2 * 11.5e6 / worker.rate - worker.pcie;
    worker.gflops = uniform(random, 200, 2000);
    if (shape.ring) {
      worker.nic = 2e8 * std::exp2(std::floor(uniform(random, 0, 5)));
      worker.fixed = uniform(random, 0, 0.3) * worker.compute;
      const double share = gpus > 1 ? uniform(random, 0, 0.2) : 0;
      worker.interconnect = {.always = share * worker.compute,
                             .waiting = share / 4,
                             .hideable = 0.6 * share * worker.compute,
                             .hides = 2 * share};
    }
    if (shape.promised) worker.relative_sd = uniform(random, 0, 0.5);
    // Prices follow speed, loosely, as they do in clouds.
    const double price = speed / 1000 * uniform(random, 0.3, 0.9);
    std::vector<Offer> offers;
    const std::string name =
        "type" + std::string(1, static_cast<char>('a' + k / 26)) + std::string(1, static_cast<char>('a' + k % 26));
    for (int z = 0; z < shape.zones; ++z) {
      offers.push_back({name,
                        Market::spot,
                        shape.zones > 1 ? "zone" + std::to_string(z) : "",
                        {price * uniform(random, 0.8, 1.2)},
                        shape.quota});
    }
    problem.kinds.push_back(make_kind(worker, std::move(offers), {{name, shape.quota * shape.zones, 0}}));
  }
  if (shape.ring) problem.servers = {ServerChoice{}};
  for (int s = 1; s <= shape.servers && !shape.ring; ++s) {
    problem.servers.push_back({.type = "server",
                               .pool = {.count = s, .nic = 1.2e9, .cores = 4, .gflops = 100},
                               .hourly = {s == 1 ? 0.0 : 0.192 * s}});
  }
  if (shape.promised) {
    problem.caution = 1.2816;
    problem.recovery = Seconds(uniform(random, 0, 600));
    problem.deadline = Seconds(0);  // the caution counts where there is one
  }
  // A random cluster of 2 to 12 machines.
  std::vector<int> counts(problem.kinds.size());
  const int most = std::max(1, std::min(12, shape.kinds * shape.quota * shape.zones / 2));
  const int machines = std::min(most, 2 + static_cast<int>(random() % 11));
  for (int i = 0; i < machines;) {
    const auto k = static_cast<std::size_t>(random() % counts.size());
    if (counts[k] == problem.kinds[k].limit()) continue;
    ++counts[k];
    ++i;
  }
  Candidate candidate;
  const bool reaches = Evaluator(problem).evaluate(counts, 0, candidate);
  problem.deadline.reset();
  if (!reaches) return problem;
  // Between that cluster's time and the fastest there is, so that some deadlines are easy and some take all machines.
  const auto fastest = exact_search(problem, {.goal = Goal::fastest, .most_nodes = 0});
  const double least = fastest.best.empty() ? candidate.time : fastest.best[0].time;
  problem.deadline = Seconds(least * std::pow(candidate.latest / least, uniform(random, 0.1, 1)) * 1.01);
  return problem;
}

}  // namespace mayfly::support
