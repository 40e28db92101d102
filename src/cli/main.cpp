#include <fmt/core.h>

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
      "answer is no.");
  int code = kDone;
  add_predict(program, code);
  add_plan(program, code);
  add_catalog(program, code);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 prints help and version by itself and numbers its errors from 100; scripts are promised a 2.
    return program.exit(error) == 0 ? kDone : kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "mayfly: {}\n", error.what());
    return kFailed;
  }
  return code;
}
