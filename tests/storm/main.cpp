// storm [--seeds N] [--first SEED] [--story]: sends sessions through storms, and tells of the first that breaks a
// promise.

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "storm/world.h"

int main(int argc, char** argv) {
  std::uint64_t seeds = 2000;
  std::uint64_t first = 1;
  bool story = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--seeds" && i + 1 < argc) seeds = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--first" && i + 1 < argc) first = std::strtoull(argv[++i], nullptr, 10);
    if (word == "--story") story = true;
  }
  std::int64_t commits = 0;
  std::int64_t rollbacks = 0;
  std::int64_t crashes = 0;
  std::int64_t machines = 0;
  std::int64_t trained = 0;
  std::int64_t stopped = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const auto run = mayfly::storm::World(seed, story).run();
    commits += run.commits;
    rollbacks += run.rollbacks;
    crashes += run.crashes;
    machines += run.machines;
    trained += run.trained ? 1 : 0;
    stopped += run.stopped ? 1 : 0;
    if (story) {
      for (const auto& line : run.told) fmt::print("{}\n", line);
    }
    if (run.broken.empty()) continue;
    const std::string file = fmt::format("storm-{}.txt", seed);
    std::ofstream out(file);
    out << "# " << run.broken << "\n";
    for (const auto& line : mayfly::storm::World(seed, true).run().told) out << line << "\n";
    fmt::print("seed {}: {}\neverything the session was told: {}\n", seed, run.broken, file);
    return 1;
  }
  fmt::print("{} storms: {} steps, {} machines, {} controllers died, {} rollbacks; {} trained to the end, {} stopped\n",
             seeds, commits, machines, crashes, rollbacks, trained, stopped);
  return 0;
}
