#include <fcntl.h>
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "cloud/catalog.h"
#include "notice/watch.h"
#include "torchrun/torchrun.h"

namespace mayfly::cli {
namespace {
namespace fs = std::filesystem;

struct TorchrunFlags {
  std::string out{};
  std::string deadline{};
  std::optional<double> budget{};
  std::optional<double> price{};
  std::string type{};
  std::string market = "spot";
  std::string catalog{};
  std::optional<double> steps{};
  std::string grace = "30s";
  std::string notices = "auto";
};

/// A program of PATH; empty: none.
fs::path in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const auto folder : split(path == nullptr ? "" : path, ':')) {
    fs::path candidate = fs::path(folder.empty() ? std::string_view(".") : folder) / name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

/// The interpreter a script names in its first line; else python3.
std::string interpreter(const fs::path& script) {
  std::ifstream file(script);
  std::string line;
  std::getline(file, line);
  if (!line.starts_with("#!")) return "python3";
  const std::string named(trimmed(std::string_view(line).substr(2)));
  return named.find("python") == std::string::npos || named.find("/env ") != std::string::npos ? "python3" : named;
}

/// Of a program whose output the user does not want to see; -1 where it did not end by itself.
int quiet_exit_code(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, stream);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// torchrun of torch 1.13 and before stumbles over Python 3.11's flags with the default value of -r and -t; a mapping
/// for a process that does not exist stands for it. Asks the interpreter, without loading torch.
bool needs_mappings(const std::string& python) {
  return quiet_exit_code({python, "-c",
                          "import sys, importlib.metadata as m; v = m.version('torch').split('.'); "
                          "sys.exit(0 if sys.version_info >= (3, 11) and int(v[0]) < 2 else 1)"}) == 0;
}

/// A value for these flags was given, on the command line before the script or in torchrun's own variables.
bool given(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> flags,
           const char* variable) {
  if (std::getenv(variable) != nullptr) return true;
  for (const std::string& word : arguments) {
    for (const auto flag : flags) {
      if (word == flag || word.starts_with(std::string(flag) + "=")) return true;
    }
    if (word.ends_with(".py")) return false;
  }
  return false;
}

Result<std::vector<std::string>> command(const std::vector<std::string>& arguments) {
  std::vector<std::string> words;
  std::string python = "python3";
  if (const auto program = in_path("torchrun"); !program.empty()) {
    words = {program.string()};
    python = interpreter(program);
  } else if (!in_path("python3").empty()) {
    words = {"python3", "-m", "torch.distributed.run"};
  } else {
    return fail("torchrun: neither torchrun nor python3 is in PATH");
  }
  if (needs_mappings(python)) {
    if (!given(arguments, {"-r", "--redirects"}, "PET_REDIRECTS")) words.insert(words.end(), {"-r", "9:1"});
    if (!given(arguments, {"-t", "--tee"}, "PET_TEE")) words.insert(words.end(), {"-t", "9:1"});
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Result<void> set_price(const TorchrunFlags& options, TorchrunInputs& inputs) {
  const auto market = parse_market(options.market);
  if (!market) return fail("--market: {}", market.error().message);
  inputs.market = *market;
  if (!options.type.empty()) {
    const auto catalog = read_catalogs(options.catalog);
    if (!catalog) return unexpected(catalog.error());
    const auto type = lookup(*catalog, options.type);
    if (!type) return fail("--as: {}", type.error().message);
    inputs.type = options.type;
    const auto& price = (*type)->price(*market);
    if (!price && !options.price) return fail("--as {}: no {} price in the catalogue", options.type, name(*market));
    if (price) inputs.price = price->rate;
  }
  if (options.price) inputs.price = UsdPerHour{*options.price};
  if (options.budget) inputs.budget = Usd{*options.budget};
  if (inputs.budget && !inputs.price) return fail("--budget: nothing is known of the price: give --price or --as");
  return {};
}

Result<TorchrunInputs> inputs_of(const TorchrunFlags& options, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return fail("torchrun: want torchrun's own flags and a script");
  TorchrunInputs inputs{.steps = options.steps,
                        .terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0};
  if (const auto set = set_price(options, inputs); !set) return unexpected(set.error());
  for (const auto& [flag, text, time] : {std::tuple{"--deadline", &options.deadline, &inputs.deadline}}) {
    if (text->empty()) continue;
    const auto parsed = parse_duration(*text);
    if (!parsed) return fail("{}: {}", flag, parsed.error().message);
    *time = *parsed;
  }
  const auto grace = parse_duration(options.grace);
  if (!grace) return fail("--grace: {}", grace.error().message);
  inputs.grace = *grace;
  auto words = command(arguments);
  if (!words) return unexpected(words.error());
  inputs.command = *std::move(words);
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string stamp = format_time(now);
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-' || c == 'Z'; });
  inputs.directory = options.out.empty() ? fs::path("mayfly-runs") / ("torchrun-" + stamp) : fs::path(options.out);
  std::error_code error;
  inputs.directory = fs::absolute(inputs.directory, error);
  if (fs::exists(inputs.directory / "journal.jsonl", error))
    return fail("{}: holds a run already", inputs.directory.string());
  fs::create_directories(inputs.directory, error);
  if (error) return fail("{}: cannot create: {}", inputs.directory.string(), error.message());
  return inputs;
}

std::string scorecard(const TorchrunSummary& summary, const TorchrunInputs& inputs) {
  Table table({"mayfly torchrun", ">promised", ">delivered"});
  table.add({"time", inputs.deadline ? format_duration(*inputs.deadline) : "-", format_duration(summary.time)});
  if (summary.cost)
    table.add({"cost", inputs.budget ? fmt::format("{:.4f} USD", inputs.budget->value) : "-",
               fmt::format("{:.4f} USD", summary.cost->value)});
  if (summary.step) table.add({"step", "-", fmt::format("{:.0f}", *summary.step)});
  if (summary.loss) table.add({"loss", "-", fmt::format("{:.4f}", *summary.loss)});
  table.add({"restarts", "-", std::to_string(summary.restarts)});
  table.add({"preemptions", "-", std::to_string(summary.preemptions)});
  table.add({"exit code", "0", std::to_string(summary.exit_code)});
  return table.text() + fmt::format("journal: {}\n", (inputs.directory / "journal.jsonl").string());
}

int torchrun(const TorchrunFlags& options, const std::vector<std::string>& arguments) {
  const auto service = metadata_service(options.notices, endpoints_of_environment(), firmware_words());
  if (!service) return bad_input(service.error());
  const auto inputs = inputs_of(options, arguments);
  if (!inputs) return bad_input(inputs.error());
  std::unique_ptr<NoticeWatch> watch;
  const auto say = [](const std::string& text) { fmt::print(stderr, "mayfly: {}\n", text); };
  const TorchrunCalls calls{.say = say, .notices = [&](const std::function<void(Seconds, const std::string&)>& tell) {
                              watch.reset();
                              if (!tell || service->cloud == Cloud::none) return;
                              watch = std::make_unique<NoticeWatch>(
                                  NoticeWatch::Options{.service = *service},
                                  NoticeWatch::Calls{.notice =
                                                         [tell](const PreemptionNotice& notice) {
                                                           // A machine that is only at risk trains on.
                                                           if (notice.left)
                                                             tell(*notice.left, notice.source + " " + notice.reason);
                                                         },
                                                     .trouble = say});
                            }};
  const auto summary = drive_torchrun(*inputs, calls);
  if (!summary) {
    fmt::print(stderr, "mayfly: {}\n", summary.error().message);
    return kFailed;
  }
  // Standard output is the script's.
  fmt::print(stderr, "{}", scorecard(*summary, *inputs));
  return summary->over_budget ? kMissed : summary->exit_code;
}

}  // namespace

void add_torchrun(CLI::App& program, int& code) {
  auto options = std::make_shared<TorchrunFlags>();
  auto* verb =
      program.add_subcommand("torchrun", "your own script under the real torchrun, with notices, time and money");
  verb->add_option("--mayfly-out", options->out,
                   "folder of the journal and summary (default: mayfly-runs/torchrun-TIME)");
  verb->add_option("--deadline", options->deadline, "said as soon as it is at risk: 6h");
  verb->add_option("--steps", options->steps, "of the whole training, where the output does not tell (step 10/1000)")
      ->check(above_zero());
  verb->add_option("--budget", options->budget, "USD; when it is spent the script gets SIGTERM, and --grace to save")
      ->check(above_zero());
  verb->add_option("--price", options->price, "USD an hour of this machine")->check(CLI::NonNegativeNumber);
  verb->add_option("--as", options->type, "instance type of this machine, for its price");
  verb->add_option("--market", options->market, "where it was bought: spot or on-demand")->capture_default_str();
  verb->add_option("--catalog", options->catalog, "catalogue files or names, separated by commas");
  verb->add_option("--grace", options->grace, "time left after a SIGTERM to this program")->capture_default_str();
  verb->add_option("--notices", options->notices,
                   "whose metadata service is asked whether this machine will be taken: auto, aws, gcp, azure, none")
      ->capture_default_str();
  verb->prefix_command();
  verb->footer(
      "mayfly's own flags come first; from the first other word on, or after --, everything is torchrun's, and its "
      "PET_ variables mean what they always do. 'mayfly torchrun -- --help' shows its flags.\n"
      "A notice becomes SIGTERM to the script's processes, which have all the time that is left to save; torchrun "
      "itself is told when that is over. MAYFLY_NOTICE_FILE names a file that then holds left_s. When members come or "
      "go torchrun still starts the script again from the script's own checkpoint: 'mayfly run' does not.\n"
      "Lines of the output with steps and losses are read on the way. Exit code: torchrun's; 4 where the budget ended "
      "it.\nExample: mayfly torchrun --deadline 6h --as g4dn.xlarge --standalone --nproc_per_node=2 train.py --lr 0.1");
  verb->callback([options, verb, &code] {
    auto arguments = verb->remaining();
    if (!arguments.empty() && arguments[0] == "--") arguments.erase(arguments.begin());
    code = torchrun(*options, arguments);
  });
}

}  // namespace mayfly::cli
