#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "status/folder.h"
#include "web/dashboard.h"
#include "wire/channel.h"

namespace mayfly::cli {
namespace fs = std::filesystem;
namespace {

struct DashboardFlags {
  std::string directory = "mayfly-runs";
  std::string host = "127.0.0.1";
  std::string token_file{};
  std::string catalog{};
  int port = 8080;
};

/// Behind those who train: looking must not cost speed.
constexpr int kNice = 10;

/// Shipped files of a kind, and those that lie in the folder itself.
Choices::Files files_of(const std::string& folder, const std::string& ending) {
  Choices::Files files;
  std::error_code error;
  for (fs::directory_iterator entry(data_folder(folder), error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ending) files[entry->path().stem().string()] = entry->path();
  }
  return files;
}

/// Profiles that measuring has left in the folder that is shown, too.
void add_profiles(Choices::Files& profiles, const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".profile.json")) profiles[name.substr(0, name.size() - 5)] = entry->path();
  }
}

Result<std::string> token(const DashboardFlags& options) {
  if (options.token_file.empty()) return is_loopback(options.host) ? std::string() : fresh_token(false);
  const auto text = load_text(options.token_file);
  if (!text) return unexpected(text.error());
  std::string word(trimmed(*text));
  constexpr std::size_t kShortest = 16;
  if (word.size() < kShortest || word.find_first_of(" \t\n") != std::string::npos)
    return fail("{}: want one word of at least {} characters", options.token_file, kShortest);
  return word;
}

int dashboard(const DashboardFlags& options) {
  std::error_code error;
  if (!fs::is_directory(options.directory, error))
    return bad_input(
        {fmt::format("{}: no such folder; want the folder of a run, or one with runs in it", options.directory)});
  const auto catalog = read_catalogs(options.catalog);
  if (!catalog) return bad_input(catalog.error());
  auto word = token(options);
  if (!word) return bad_input(word.error());
  const auto gpus = shipped_gpus();
  if (!gpus) return bad_input(gpus.error());
  const auto weather = shipped_weather();
  if (!weather) return bad_input(weather.error());
  const auto tariffs = shipped_tariffs();
  if (!tariffs) return bad_input(tariffs.error());
  Choices choices{.profiles = files_of("profiles", ".json"),
                  .catalogs = files_of("catalogs", ".yaml"),
                  .traces = files_of("traces", ".json"),
                  .gpus = *gpus,
                  .weather = *weather,
                  .tariffs = *tariffs};
  add_profiles(choices.profiles, options.directory);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  setpriority(PRIO_PROCESS, 0, kNice);
  auto shown = Dashboard::start({.root = options.directory,
                                 .host = options.host,
                                 .port = options.port,
                                 .token = *word,
                                 .choices = std::move(choices),
                                 .catalog = &*catalog});
  if (!shown) return bad_input(shown.error());
  const std::string host = options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  fmt::print("http://{}:{}/{}\n", host, shown->port(), word->empty() ? "" : "?token=" + *word);
  if (!is_loopback(options.host))
    note("the connection is not encrypted: whoever can listen on this network can read the token; ssh -L avoids that");
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  // A client that is being answered may take long; this process only reads, so nothing is lost by ending in the middle.
  ::_exit(kDone);
}

}  // namespace

void add_dashboard(CLI::App& program, int& code) {
  auto options = std::make_shared<DashboardFlags>();
  auto* verb = program.add_subcommand("dashboard", "a live view of runs in the browser, and the planner at hand");
  verb->add_option("directory", options->directory, "the folder of a run, or one with runs in it")
      ->capture_default_str();
  verb->add_option("--port", options->port, "0: any that is free")->capture_default_str()->check(CLI::Range(0, 65535));
  verb->add_option("--host", options->host,
                   "address to listen on; one that others can reach needs a token, which is "
                   "made and printed unless --token-file has one")
      ->capture_default_str();
  verb->add_option("--token-file", options->token_file, "file with the word that every request must know");
  verb->add_option("--catalog", options->catalog,
                   "catalogue files or names, separated by commas, for prices on demand");
  verb->footer(
      "Prints its address; Ctrl-C ends it. It only reads: runs go on with or without it.\nAlso there: /metrics "
      "for Prometheus, /healthz, and the API that /openapi.json describes.\nExample: mayfly dashboard "
      "mayfly-runs --port 8080");
  verb->callback([options, &code] { code = dashboard(*options); });
}

}  // namespace mayfly::cli
