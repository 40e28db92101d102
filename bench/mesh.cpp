// mesh [RANKS[,RANKS...]]: adding up among processes of this machine over loopback, over gloo and over the run's own
// links, in the clear and encrypted, side by side: a row for each size, median of the rounds, of rank 0.
// mesh RANK RANKS INTERFACE FOLDER: one of those processes, where others run elsewhere (bench/mesh.py); they meet in an
// empty folder.
#include <fmt/core.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "train/mesh.h"

namespace {

using mayfly::Mesh;
using Clock = std::chrono::steady_clock;
using Sum = std::function<void(std::span<float>)>;

constexpr std::array<std::size_t, 6> kSizes = {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr int kRounds = 5;

struct Seat {
  int rank = 0;
  int ranks = 1;
  std::string interface = "lo";
  std::string folder{};
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "mesh: {}\n", why);
  std::exit(1);
}

/// What all ranks have written for one purpose.
std::vector<std::string> words_of_all(const Seat& seat, const std::string& purpose, const std::string& own) {
  const auto file = [&](int rank) { return fmt::format("{}/{}-{}", seat.folder, purpose, rank); };
  if (auto saved = mayfly::save_text(file(seat.rank) + ".new", own); !saved) give_up(saved.error().message);
  std::filesystem::rename(file(seat.rank) + ".new", file(seat.rank));
  std::vector<std::string> words;
  for (int rank = 0; rank < seat.ranks; ++rank) {
    while (!std::filesystem::exists(file(rank))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    words.push_back(mayfly::load_text(file(rank)).value());
  }
  return words;
}

Sum over_gloo(const Seat& seat) {
  gloo::transport::tcp::attr attr;
  attr.iface = seat.interface;
  auto context = std::make_shared<gloo::rendezvous::Context>(seat.rank, seat.ranks);
  gloo::rendezvous::FileStore store(seat.folder);
  auto device = gloo::transport::tcp::CreateDevice(attr);
  context->connectFullMesh(store, device);
  return [context, tag = 0u](std::span<float> values) mutable {
    gloo::AllreduceOptions options(context);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    options.setTag(++tag);
    gloo::allreduce(options);
  };
}

/// The device and the mesh live as long as the process.
Sum over_links(const Seat& seat, const std::string& token, std::int64_t formation) {
  auto network = mayfly::NetworkDevice::open(seat.interface, mayfly::Credentials::from(token).value());
  if (!network) give_up(network.error().message);
  auto mesh = Mesh::open(*network->release(), {.formation = formation, .rank = seat.rank, .size = seat.ranks});
  if (!mesh) give_up(mesh.error().message);
  const auto words = words_of_all(seat, fmt::format("word-{}", formation), (*mesh)->word());
  if (auto met = (*mesh)->connect(words); !met) give_up(met.error().message);
  return [mesh = std::shared_ptr<Mesh>(std::move(*mesh))](std::span<float> values) {
    if (auto summed = mesh->sum(values); !summed) give_up(summed.error().message);
  };
}

/// Seconds an exchange, over as many as make a measurement.
double time_of(const Sum& sum, std::span<float> values) {
  const int times = static_cast<int>(std::clamp<std::size_t>((32 << 20) / values.size_bytes(), 2, 100));
  sum(values);
  const auto start = Clock::now();
  for (int i = 0; i < times; ++i) sum(values);
  return std::chrono::duration<double>(Clock::now() - start).count() / times;
}

void measure(const Seat& seat) {
  const std::string token = words_of_all(seat, "token", mayfly::fresh_token(true).value())[0];
  const std::array ways = {over_gloo(seat), over_links(seat, token.substr(0, token.find('-')), 1),
                           over_links(seat, token, 2)};
  for (const auto size : kSizes) {
    std::vector<float> values(size / sizeof(float));
    std::array<std::vector<double>, 3> times;
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t way = 0; way < ways.size(); ++way) times[way].push_back(time_of(ways[way], values));
    }
    if (seat.rank != 0) continue;
    std::array<double, 3> middle{};
    for (std::size_t way = 0; way < ways.size(); ++way) {
      std::ranges::sort(times[way]);
      middle[way] = times[way][kRounds / 2];
    }
    // What each rank sends at least, and as much comes to it.
    const double sent = 2.0 * (seat.ranks - 1) / seat.ranks * static_cast<double>(size);
    fmt::print("| {} | {} kB | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.2f} | {:.0f} | {:.0f} |\n", seat.ranks,
               size >> 10, middle[0] * 1e3, middle[1] * 1e3, middle[2] * 1e3, middle[0] / middle[1],
               middle[0] / middle[2], sent / middle[1] / 1e6, sent / middle[2] / 1e6);
    std::fflush(stdout);
  }
  words_of_all(seat, "done", "");
}

void on_loopback(int ranks) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("mayfly-mesh-{}-{}", ::getpid(), ranks);
  std::filesystem::create_directory(folder);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    processes.push_back(::fork());
    if (processes.back() > 0) continue;
    measure({.rank = rank, .ranks = ranks, .folder = folder.string()});
    std::fflush(stdout);
    std::_Exit(0);  // what others still read is not taken apart
  }
  for (const pid_t process : processes) ::waitpid(process, nullptr, 0);
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 5) {
      measure({.rank = std::atoi(argv[1]), .ranks = std::atoi(argv[2]), .interface = argv[3], .folder = argv[4]});
      std::fflush(stdout);
      std::_Exit(0);
    }
    fmt::print(
        "| ranks | size | gloo ms | clear ms | TLS ms | gloo / clear | gloo / TLS | clear MB/s | TLS MB/s |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    std::fflush(stdout);
    for (const auto ranks : mayfly::split(argc > 1 ? argv[1] : "2,4,8", ','))
      on_loopback(static_cast<int>(mayfly::parse_integer(ranks).value()));
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}
