#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "cli/command.h"

#ifndef MAYFLY_VERSION
#error "the build sets MAYFLY_VERSION"
#endif

int main(int argc, char** argv) {
  using namespace mayfly::cli;
  CLI::App program{"mayfly: predictable, cheap training of neural networks on machines that may vanish", "mayfly"};
  program.set_version_flag("--version", "mayfly " MAYFLY_VERSION);
  program.require_subcommand(1);
  program.footer(
      "Run 'mayfly VERB --help' for the options of a verb. Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 the "
      "answer is no, 4 a promise was missed.");
  int code = kDone;
  add_profile(program, code);
  add_predict(program, code);
  add_plan(program, code);
  add_catalog(program, code);
  add_trace(program, code);
  add_replay(program, code);
  add_backtest(program, code);
  add_run(program, code);
  add_resume(program, code);
  add_status(program, code);
  add_logs(program, code);
  add_stop(program, code);
  add_sweep(program, code);
  add_worker(program, code);
  add_drill(program, code);
  add_torchrun(program, code);
  add_report(program, code);
  add_dashboard(program, code);
  add_check(program, code);
  const bool passed_on = argc > 1 && std::string_view(argv[1]) == "torchrun";  // empty words are the script's
  for (int i = 1; i < argc && !passed_on; ++i) {
    if (*argv[i] == '\0') return bad_input({fmt::format("empty value after {}", argv[i - 1])});
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return program.exit(asked);  // help or version
  } catch (const CLI::ParseError& error) {
    std::string verb = argc > 1 ? argv[1] : "";
    std::string message = error.what();
    const auto verbs = program.get_subcommands([](const CLI::App*) { return true; });
    const auto found =
        std::find_if(verbs.begin(), verbs.end(), [&](const CLI::App* app) { return app->get_name() == verb; });
    const CLI::App* known = found == verbs.end() ? nullptr : *found;
    // CLI11 says only that a subcommand is required, whatever stood in its place.
    if (message.starts_with("A subcommand is required")) {
      std::string words;
      for (const auto* sub :
           (known != nullptr ? known : &program)->get_subcommands([](const CLI::App*) { return true; }))
        words += " " + sub->get_name();
      const char* seen = known != nullptr ? (argc > 2 ? argv[2] : nullptr) : (argc > 1 ? argv[1] : nullptr);
      message = fmt::format("{}want one of{}", seen != nullptr ? fmt::format("'{}': ", seen) : "", words);
    }
    return bad_input({fmt::format("{} (see mayfly {}--help)", message, known != nullptr ? verb + " " : "")});
  } catch (const std::exception& error) {
    fmt::print(stderr, "mayfly: {}\n", error.what());
    return kFailed;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "mayfly: standard output: cannot write\n");
    return kFailed;
  }
  return code;
}
