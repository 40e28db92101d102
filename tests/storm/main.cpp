// storm [--seeds N] [--first SEED]: sends sessions through storms, and tells of the first that breaks a promise.
// storm --seed N --story: one of them, with everything that its session was told and wanted done.
// storm --replay FILE: tells a session what a story says, without the storm, and compares what it wants done.

#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "storm/story.h"
#include "storm/world.h"

namespace mayfly::storm {
namespace {

volatile std::sig_atomic_t at_sea = 0;  ///< the seed

/// A check that failed, or a limit of CPU time: says with which seed.
void founder(int signal) {
  char text[] = "seed           : ";
  int place = 14;
  for (std::sig_atomic_t left = at_sea; left > 0; left /= 10) text[place--] = static_cast<char>('0' + left % 10);
  const auto say = [](const char* words, std::size_t size) { return ::write(STDOUT_FILENO, words, size) > 0; };
  constexpr char kAborts[] = "the program aborts\n";
  constexpr char kTurns[] = "the program does not come to an end\n";
  const bool said = say(text, sizeof text - 1) &&
                    (signal == SIGXCPU ? say(kTurns, sizeof kTurns - 1) : say(kAborts, sizeof kAborts - 1));
  std::signal(signal, SIG_DFL);
  if (said) std::raise(signal);
  std::_Exit(1);
}

void write_story(std::ostream& out, std::uint64_t seed, const StormRun& run) {
  out << "# seed " << seed << ": " << (run.broken.empty() ? "no promise is broken" : run.broken) << "\n"
      << "# once more, with its storm: build/tests/storm --seed " << seed << " --story\n"
      << "# the session alone, told what stands here: build/tests/storm --replay FILE\n";
  for (const auto& line : run.told) out << line << "\n";
}

int show(std::uint64_t seed) {
  const StormRun run = World(seed, true).run();
  write_story(std::cout, seed, run);
  return run.broken.empty() ? 0 : 1;
}

int replay_file(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> story;
  for (std::string line; std::getline(in, line);) story.push_back(line);
  constexpr std::string_view kSeed = "# seed ";
  if (story.empty() || !story[0].starts_with(kSeed)) {
    fmt::print("{}: no story: it begins with '# seed N: ...'\n", path);
    return 2;
  }
  const World world(std::strtoull(story[0].c_str() + kSeed.size(), nullptr, 10), false);
  const std::string differs = replay(story, world.inputs(), world.expected());
  fmt::print("{}: {}\n", path, differs.empty() ? "the session does the same" : differs);
  return differs.empty() ? 0 : 1;
}

int sail(std::uint64_t first, std::uint64_t seeds) {
  std::int64_t commits = 0;
  std::int64_t rollbacks = 0;
  std::int64_t crashes = 0;
  std::int64_t machines = 0;
  std::int64_t trained = 0;
  std::int64_t stopped = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    at_sea = static_cast<std::sig_atomic_t>(seed);
    const StormRun run = World(seed, false).run();
    commits += run.commits;
    rollbacks += run.rollbacks;
    crashes += run.crashes;
    machines += run.machines;
    trained += run.trained ? 1 : 0;
    stopped += run.stopped ? 1 : 0;
    if (run.broken.empty()) continue;
    const std::string file = fmt::format("storm-{}.txt", seed);
    std::ofstream out(file);
    write_story(out, seed, World(seed, true).run());
    fmt::print("seed {}: {}\neverything the session was told: {}\n", seed, run.broken, file);
    return 1;
  }
  fmt::print("{} storms: {} steps, {} machines, {} controllers died, {} rollbacks; {} trained to the end, {} stopped\n",
             seeds, commits, machines, crashes, rollbacks, trained, stopped);
  return 0;
}

}  // namespace
}  // namespace mayfly::storm

int main(int argc, char** argv) {
  std::uint64_t seeds = 2000;
  std::uint64_t first = 1;
  bool story = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--replay") return mayfly::storm::replay_file(value);
    if (word == "--seeds") seeds = std::strtoull(value, nullptr, 10);
    if (word == "--first") first = std::strtoull(value, nullptr, 10);
    if (word == "--seed") {
      first = std::strtoull(value, nullptr, 10);
      seeds = 1;
    }
    if (word == "--story") story = true;
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGXCPU}) std::signal(signal, mayfly::storm::founder);
  return story ? mayfly::storm::show(first) : mayfly::storm::sail(first, seeds);
}
