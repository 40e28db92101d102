#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "train/log.h"
#include "train/own_files.h"
#include "train/server.h"
#include "train/shelf_depot.h"
#include "train/worker.h"
#include "wire/file_limit.h"
#include "wire/interface.h"

namespace {

using mayfly::Result;

struct Flags {
  std::string join{};
  std::string token_file{};
  std::string interface = "lo";
  std::string notices = "none";
  std::string machine_name{};
  int launch = -1;
  std::string network{};
  std::string files{};
  std::string checkpoint{};
  std::optional<double> cpu_share{};
  bool trust = false;
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
Result<mayfly::Credentials> credentials(const std::string& file) {
  const char* value = std::getenv("MAYFLY_TOKEN");
  if (file.empty() && value == nullptr) return mayfly::fail("no token: set MAYFLY_TOKEN or give --token-file");
  const auto token = file.empty() ? Result<std::string>(value) : mayfly::load_text(file);
  if (!token) return mayfly::unexpected(token.error());
  auto known = mayfly::Credentials::from(mayfly::trimmed(*token));
  if (!known) return mayfly::fail("{}: {}", file.empty() ? "MAYFLY_TOKEN" : file, known.error().message);
  return known;
}

/// "125MB/s" or "1Gbit/s".
Result<std::optional<mayfly::BytesPerSecond>> rate(const std::string& text) {
  if (text.empty()) return std::nullopt;
  for (const auto& [unit, bytes] : {std::pair{"MB/s", 1e6}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}}) {
    if (!text.ends_with(unit)) continue;
    const auto number = mayfly::parse_number(mayfly::trimmed(text.substr(0, text.size() - std::strlen(unit))));
    if (number && *number > 0) return mayfly::BytesPerSecond{*number * bytes};
  }
  return mayfly::fail("--network '{}': want a rate such as 125MB/s or 1Gbit/s", text);
}

Result<mayfly::Line::Options> line_of(const Flags& flags) {
  mayfly::Line::Options line{.launch = flags.launch};
  if (const char* machine = std::getenv("MAYFLY_MACHINE"); machine != nullptr && flags.launch >= 0)
    line.machine = machine;
  if (auto read = read_join(flags.join, line); !read) return mayfly::unexpected(read.error());
  auto known = credentials(flags.token_file);
  if (!known) return mayfly::unexpected(known.error());
  line.credentials = *std::move(known);
  if (const char* notice = std::getenv("MAYFLY_NOTICE_S")) {
    const auto seconds = mayfly::parse_number(notice);
    if (!seconds || *seconds < 0) return mayfly::fail("MAYFLY_NOTICE_S '{}': want seconds", notice);
    line.notice = mayfly::Seconds(*seconds);
  }
  return line;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<mayfly::MetadataService> metadata_of(const Flags& flags) {
  const mayfly::MetadataEndpoints endpoints{.aws = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
                                            .gcp = environment("GCE_METADATA_HOST"),
                                            .azure = environment("MAYFLY_AZURE_METADATA_ENDPOINT")};
  auto service = mayfly::metadata_service(flags.notices, endpoints, mayfly::firmware_words());
  if (service) service->machine_name = flags.machine_name;
  return service;
}

mayfly::Surroundings surroundings() {
  return {.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }};
}

mayfly::OwnFiles own_files(const Flags& flags, const mayfly::Line::Options& line) {
  std::error_code error;
  return {.folder = std::filesystem::absolute(flags.files, error),
          .cache = mayfly::usual_cache(),
          .carrier = {.host = line.host, .port = line.port, .credentials = line.credentials}};
}

/// What is done for a script on such a machine; where that is, if it is somewhere.
Result<std::filesystem::path> carried(const Flags& flags, const std::string& verb) {
  const auto line = line_of(flags);
  if (!line) return mayfly::unexpected(line.error());
  const mayfly::OwnFiles own = own_files(flags, *line);
  if (verb == "bring") {
    auto path = mayfly::Carrier(own.carrier).bring(flags.checkpoint);
    if (!path) return mayfly::unexpected(path.error());
    return *path;
  }
  if (verb == "take") return mayfly::taken_checkpoint(own.carrier, flags.checkpoint, own.folder);
  if (const auto done = mayfly::fetch_files(own); !done) return mayfly::unexpected(done.error());
  return own.folder;
}

int carry(const Flags& flags, const std::string& verb) {
  const auto place = carried(flags, verb);
  if (place) {
    fmt::print("{}\n", place->string());
    return 0;
  }
  fmt::print(stderr, "mayfly-train: {}\n", place.error().message);
  return mayfly::Member::kUnable;
}

/// Of a worker's or server's options.
template <class Options>
Result<Options> options_of(const Flags& flags) {
  auto line = line_of(flags);
  if (!line) return mayfly::unexpected(line.error());
  auto metadata = metadata_of(flags);
  if (!metadata) return mayfly::unexpected(metadata.error());
  line->metadata = std::move(*metadata);
  const auto network = rate(flags.network);
  if (!network) return mayfly::unexpected(network.error());
  const auto interface = flags.interface == "auto" ? mayfly::interface_towards(line->host, line->port)
                                                   : Result<std::string>(flags.interface);
  if (!interface) return mayfly::unexpected(interface.error());
  Options options;
  if (!flags.files.empty()) options.own = own_files(flags, *line);
  options.line = std::move(*line);
  options.interface = *interface;
  options.network = *network;
  options.trust = flags.trust;
  options.around = surroundings();
  if constexpr (requires { options.cpu_share; }) options.cpu_share = flags.cpu_share;
  return options;
}

template <class Kind>
int work(const Flags& flags) {
  auto options = options_of<typename Kind::Options>(flags);
  if (!options) {
    fmt::print(stderr, "mayfly-train: {}\n", options.error().message);
    return mayfly::Member::kUnable;
  }
  std::signal(SIGINT, SIG_IGN);  // a Ctrl-C reaches the whole group; the controller decides what it means
  std::signal(SIGPIPE, SIG_IGN);
  return Kind(std::move(*options)).run();
}

void add_flags(CLI::App& command, Flags& flags) {
  command.add_option("--join", flags.join, "HOST:PORT of the controller")->required();
  command.add_option("--slot", flags.launch, "which of the engine's machines this is")->check(CLI::NonNegativeNumber);
  command.add_option("--interface", flags.interface,
                     "network interface towards the others; auto: the one that leads to the controller (lo)");
  command.add_option("--token-file", flags.token_file, "file with the run's token; otherwise MAYFLY_TOKEN holds it");
  command.add_option(
      "--notices", flags.notices,
      "whose metadata service says when this machine will be taken: auto, aws, gcp, azure or none (none)");
  command.add_option("--machine-name", flags.machine_name,
                     "this machine's name in Azure's scheduled events (default: the service is asked)");
  command.add_flag("--trust", flags.trust, "load a TorchScript model, which is a program, though it is another user's");
  command.add_option(
      "--files", flags.files,
      "this machine does not see the controller's files: they are fetched into this folder of its own, and "
      "checkpoints go and come over the same connection");
  command.add_option("--network", flags.network, "emulate a network of this rate each way, such as 125MB/s");
}

/// What makes LibTorch fast is read when it is loaded, which was before main(): set and started once more. A
/// program that starts workers by the hundred, as an engine does, sets it before.
void start_again_if_slow(char** argv) {
  bool missing = false;
  for (const auto& setting : mayfly::compute_settings(mayfly::compute_threads())) {
    missing = missing || std::getenv(setting.name.c_str()) == nullptr;
    ::setenv(setting.name.c_str(), setting.value.c_str(), 0);
  }
  if (missing) ::execv("/proc/self/exe", argv);
}

/// For scripts on machines that do not see the controller's files; mayfly's own workers do the same themselves.
void add_carriers(CLI::App& program, Flags& flags, std::string& verb) {
  const auto add = [&](const char* name, const char* what) {
    auto* command = program.add_subcommand(name, what);
    command->add_option("--join", flags.join, "HOST:PORT of the controller")->required();
    command->add_option("--token-file", flags.token_file, "file with the run's token; otherwise MAYFLY_TOKEN holds it");
    command->callback([&verb, name] { verb = name; });
    return command;
  };
  add("fetch", "fetch the files that a run's job names")
      ->add_option("--files", flags.files, "into this folder, which is made where it is not there")
      ->required();
  add("bring", "bring a checkpoint to the controller's computer")
      ->add_option("checkpoint", flags.checkpoint, "its folder")
      ->required();
  auto* take = add("take", "fetch a checkpoint of the controller's computer");
  take->add_option("checkpoint", flags.checkpoint, "as the controller calls it")->required();
  take->add_option("--files", flags.files, "into this folder")->required();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program{"mayfly-train: the processes that train, started by 'mayfly run' or by hand", "mayfly-train"};
  program.set_version_flag("--version", "mayfly-train " MAYFLY_VERSION);
  program.require_subcommand(1);
  Flags flags;
  auto* worker = program.add_subcommand("worker", "train for a controller until told to leave");
  add_flags(*worker, flags);
  worker->add_option("--cpu-share", flags.cpu_share, "emulate a machine with this share of a core, such as 0.4")
      ->check(CLI::Range(0.001, 1.0));
  auto* server = program.add_subcommand("server", "hold parameters for the workers of a controller");
  add_flags(*server, flags);
  std::string carries;
  add_carriers(program, flags, carries);
  try {
    program.parse(argc, argv);
    if (!carries.empty()) return carry(flags, carries);
    start_again_if_slow(argv);
    if (!server->parsed()) return work<mayfly::Worker>(flags);
    mayfly::log_as("server");
    mayfly::raised_file_limit();  // a connection for each worker
    return work<mayfly::Server>(flags);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : mayfly::Member::kUnable;
  } catch (const std::exception& error) {
    fmt::print(stderr, "mayfly-train: {}\n", error.what());
    return mayfly::Member::kRejected;
  }
}
