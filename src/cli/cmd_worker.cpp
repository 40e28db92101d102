#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/cpu.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/supervise.h"
#include "notice/watch.h"
#include "wire/interface.h"

namespace mayfly::cli {
namespace {

struct WorkerFlags {
  std::string join{};
  std::string notices = "auto";
  std::string machine_name{};
  std::string token_file{};
  std::string interface = "auto";
  std::string role = "worker";
  int launch = -1;
  std::string files{};
  bool trust = false;
  std::vector<std::string> command{};
};

Result<std::string> token_of(const WorkerFlags& options) {
  if (!options.token_file.empty()) {
    const auto text = load_text(options.token_file);
    if (!text) return unexpected(text.error());
    if (trimmed(*text).empty()) return fail("{}: empty, want the run's token", options.token_file);
    return std::string(trimmed(*text));
  }
  std::string token = environment("MAYFLY_TOKEN");
  if (token.empty()) return fail("no token: set MAYFLY_TOKEN or give --token-file (DIR/token of the run)");
  return token;
}

Result<void> check_join(const std::string& join) {
  const auto colon = join.rfind(':');
  const auto port = colon == join.npos ? std::nullopt : parse_integer(join.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535 || colon == 0)
    return fail("--join '{}': want HOST:PORT, as in DIR/address of the run", join);
  return {};
}

/// The network towards the others: where nothing is said, the one that leads to the controller.
Result<std::string> interface_of(const WorkerFlags& options) {
  if (options.interface != "auto") return options.interface;
  const auto colon = options.join.rfind(':');
  std::string host = options.join.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  return interface_towards(host, static_cast<std::uint16_t>(*parse_integer(options.join.substr(colon + 1))));
}

/// In place of this process; returns only where that fails.
int become(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  return bad_input({fmt::format("{}: cannot start: {}", words[0], std::strerror(errno))});
}

/// What a command that knows nothing of clouds has left after its SIGTERM: the cloud's window without the time in
/// which it was not asked.
Seconds window_of(Cloud cloud) {
  const Seconds window = cloud == Cloud::aws ? Seconds(120) : Seconds(30);
  return window - MetadataClient::interval(cloud);
}

/// The command as a child, which gets a SIGTERM when its machine will be taken.
int watch_over(const std::vector<std::string>& command, const MetadataService& service) {
  ::setenv("MAYFLY_NOTICE_S", fmt::format("{}", window_of(service.cloud).count()).c_str(), 0);
  const pid_t pid = ::fork();
  if (pid < 0) {
    fmt::print(stderr, "mayfly: cannot start a process: {}\n", std::strerror(errno));
    return kFailed;
  }
  if (pid == 0) ::_exit(become(command));
  pass_on_to(pid, {SIGINT, SIGTERM, SIGHUP});
  const NoticeWatch watch({.service = service},
                          {.notice =
                               [pid](const PreemptionNotice& notice) {
                                 note(fmt::format("{}: {}", notice.source, notice.reason));
                                 if (notice.left) ::kill(pid, SIGTERM);
                               },
                           .trouble = [](const std::string& why) { note("no word about notices: " + why); }});
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  pass_on_to(0, {});
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int worker(const WorkerFlags& options) {
  if (const auto checked = check_join(options.join); !checked) return bad_input(checked.error());
  const auto interface = interface_of(options);
  if (!interface) return bad_input(interface.error());
  const auto token = token_of(options);
  if (!token) return bad_input(token.error());
  auto service = metadata_service(options.notices, endpoints_of_environment(), firmware_words());
  if (!service) return bad_input({"--" + service.error().message});
  service->machine_name = options.machine_name;
  ::setenv("MAYFLY_TOKEN", token->c_str(), 1);
  // Before LibTorch is loaded, which reads it once.
  for (const ComputeSetting& setting : compute_settings(compute_threads()))
    ::setenv(setting.name.c_str(), setting.value.c_str(), 0);
  if (!options.command.empty()) {
    ::setenv("MAYFLY_JOIN", options.join.c_str(), 1);
    ::setenv("MAYFLY_SLOT", std::to_string(options.launch).c_str(), 1);
    ::setenv("MAYFLY_INTERFACE", interface->c_str(), 1);
    return service->cloud == Cloud::none ? become(options.command) : watch_over(options.command, *service);
  }
  const auto program = train_program();
  if (!program) return bad_input(program.error());
  std::vector<std::string> words{program->string(), options.role, "--join",    options.join,
                                 "--interface",     *interface,   "--notices", std::string(name(service->cloud))};
  if (options.trust) words.emplace_back("--trust");
  if (!options.files.empty()) words.insert(words.end(), {"--files", options.files});
  if (options.launch >= 0) words.insert(words.end(), {"--slot", std::to_string(options.launch)});
  if (!options.machine_name.empty()) words.insert(words.end(), {"--machine-name", options.machine_name});
  return become(std::move(words));
}

}  // namespace

void add_worker(CLI::App& program, int& code) {
  auto options = std::make_shared<WorkerFlags>();
  auto* verb = program.add_subcommand("worker", "train for the controller of a run: all that a machine has to start");
  verb->add_option("--join", options->join, "HOST:PORT of the controller: DIR/address of the run")->required();
  verb->add_option(
      "--files", options->files,
      "this machine does not see the controller's files: those of the job are fetched into this folder over "
      "the run's connection, and checkpoints go and come the same way");
  verb->add_option("--notices", options->notices,
                   "whose metadata service says when this machine will be taken: auto, aws, gcp, azure or none; auto "
                   "goes by the firmware's words and asks nobody on a machine of your own")
      ->capture_default_str();
  verb->add_option("--machine-name", options->machine_name,
                   "this machine's name in Azure's scheduled events (default: the service is asked)");
  verb->add_option("--token-file", options->token_file,
                   "file with the run's token, DIR/token; otherwise MAYFLY_TOKEN holds it");
  verb->add_flag("--trust", options->trust,
                 "load a TorchScript model that belongs to another user: it is a program and may do what you may");
  verb->add_option("--interface", options->interface,
                   "network interface towards the others; auto: the one that leads to the controller")
      ->capture_default_str();
  verb->add_option("--role", options->role, "worker, or server: hold parameters for the others")
      ->check(CLI::IsMember({"worker", "server"}))
      ->capture_default_str();
  verb->add_option("--slot", options->launch, "number of the machine, where an engine counts them")
      ->check(CLI::NonNegativeNumber);
  verb->add_option(
      "command", options->command,
      "after --: a worker of your own instead of mayfly's; it finds MAYFLY_JOIN, MAYFLY_TOKEN, MAYFLY_SLOT "
      "and MAYFLY_INTERFACE in its environment, and gets a SIGTERM with MAYFLY_NOTICE_S left on a notice");
  verb->footer(
      "Notices and what is done with them: docs/notices.md.\nExample: mayfly worker --join 10.0.0.5:7070 --token-file "
      "token --interface eth0");
  verb->callback([options, &code] { code = worker(*options); });
}

}  // namespace mayfly::cli
