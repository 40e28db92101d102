#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/file.h"
#include "base/text.h"
#include "train/log.h"
#include "train/worker.h"

namespace {

using mayfly::Result;

struct Flags {
  std::string join{};
  std::string token_file{};
  std::string interface = "lo";
  int slot = -1;
};

/// "HOST:PORT"; the host may be an IPv6 address in brackets.
Result<void> read_join(const std::string& join, mayfly::Line::Options& line) {
  const auto colon = join.rfind(':');
  const auto port = colon == join.npos ? std::nullopt : mayfly::parse_integer(join.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 || colon == 0)
    return mayfly::fail("--join '{}': want HOST:PORT, such as 127.0.0.1:7070", join);
  line.host = join.substr(0, colon);
  if (line.host.starts_with("[") && line.host.ends_with("]")) line.host = line.host.substr(1, line.host.size() - 2);
  line.port = static_cast<std::uint16_t>(*port);
  return {};
}

/// Never from the command line, which every user of the machine can read.
Result<std::string> token(const std::string& file) {
  if (!file.empty()) {
    auto text = mayfly::load_text(file);
    if (!text) return mayfly::unexpected(text.error());
    return std::string(mayfly::trimmed(*text));
  }
  const char* value = std::getenv("MAYFLY_TOKEN");
  if (value == nullptr) return mayfly::fail("no token: set MAYFLY_TOKEN or give --token-file");
  return std::string(value);
}

Result<mayfly::Worker::Options> options_of(const Flags& flags) {
  mayfly::Worker::Options options;
  options.interface = flags.interface;
  if (auto read = read_join(flags.join, options.line); !read) return mayfly::unexpected(read.error());
  auto secret = token(flags.token_file);
  if (!secret) return mayfly::unexpected(secret.error());
  options.line.token = std::move(*secret);
  options.line.slot = flags.slot;
  if (const char* notice = std::getenv("MAYFLY_NOTICE_S")) {
    const auto seconds = mayfly::parse_number(notice);
    if (!seconds || *seconds < 0) return mayfly::fail("MAYFLY_NOTICE_S '{}': want seconds", notice);
    options.line.notice = mayfly::Seconds(*seconds);
  }
  return options;
}

int work(const Flags& flags) {
  auto options = options_of(flags);
  if (!options) {
    fmt::print(stderr, "mayfly-train: {}\n", options.error().message);
    return mayfly::Worker::kUnable;
  }
  std::signal(SIGINT, SIG_IGN);  // a Ctrl-C reaches the whole group; the controller decides what it means
  std::signal(SIGPIPE, SIG_IGN);
  return mayfly::Worker(std::move(*options)).run();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program{"mayfly-train: the processes that train, started by 'mayfly run' or by hand", "mayfly-train"};
  program.set_version_flag("--version", "mayfly-train " MAYFLY_VERSION);
  program.require_subcommand(1);
  Flags flags;
  auto* worker = program.add_subcommand("worker", "train for a controller until told to leave");
  worker->add_option("--join", flags.join, "HOST:PORT of the controller")->required();
  worker->add_option("--slot", flags.slot, "which of the engine's machines this is")->check(CLI::NonNegativeNumber);
  worker->add_option("--interface", flags.interface, "network interface towards the other workers (lo)");
  worker->add_option("--token-file", flags.token_file, "file with the run's token; otherwise MAYFLY_TOKEN holds it");
  try {
    program.parse(argc, argv);
    return work(flags);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : mayfly::Worker::kUnable;
  } catch (const std::exception& error) {
    fmt::print(stderr, "mayfly-train: {}\n", error.what());
    return mayfly::Worker::kRejected;
  }
}
