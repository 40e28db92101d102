// store PLACE MEGABYTES [ROUNDS]: a checkpoint of this size into a depot and back into memory, as a worker does both. A
// line of JSON for each round: seconds of writing and of reading, and the address. Asks and signs as `mayfly run`
// would.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "vault/depot.h"

namespace {

using namespace mayfly;
using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return Seconds(Clock::now() - start).count(); }

int failed(const Error& error) {
  fmt::print(stderr, "store: {}\n", error.message);
  return 1;
}

/// One write and one read; the state says which round it was.
Result<void> play(Depot& depot, std::span<const TensorView> tensors, int round) {
  const TrainerState state{.sample = round, .step = round, .ledger = {{0, round}}, .job = "bench"};
  const auto start = Clock::now();
  const auto address = depot.write(state, tensors, {});
  if (!address) return unexpected(address.error());
  const double write_s = since(start);
  const auto again = Clock::now();
  const auto read = depot.read(*address);
  if (!read) return unexpected(read.error());
  fmt::print("{{\"write_s\": {}, \"read_s\": {}, \"address\": \"{}\"}}\n", write_s, since(again), *address);
  std::fflush(stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto megabytes = argc > 2 ? parse_integer(argv[2]) : std::nullopt;
  const auto rounds = argc > 3 ? parse_integer(argv[3]) : std::optional(1);
  if (!megabytes || *megabytes < 1 || !rounds || *rounds < 1) {
    fmt::print(stderr, "usage: store PLACE MEGABYTES [ROUNDS]\n");
    return 2;
  }
  std::vector<float> values(static_cast<std::size_t>(*megabytes) * 250'000);
  std::iota(values.begin(), values.end(), 1.0F);
  const TensorView tensor{
      .name = "w", .shape = {static_cast<std::int64_t>(values.size())}, .bytes = std::as_bytes(std::span(values))};
  const Surroundings around{.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }};
  auto depot = open_depot(argv[1], around, [](const std::string& text) { fmt::print(stderr, "{}\n", text); });
  if (!depot) return failed(depot.error());
  for (int round = 1; round <= *rounds; ++round) {
    if (const auto played = play(**depot, {&tensor, 1}, round); !played) return failed(played.error());
  }
}
