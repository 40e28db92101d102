#include "cli/command.h"

namespace mayfly::cli {

void add_trace(CLI::App& program, int& code) {
  auto* verb = program.add_subcommand("trace", "the weather: how machines came and went, and at what price");
  verb->require_subcommand(1);
  add_trace_files(*verb, code);
  add_trace_generate(*verb, code);
  add_trace_forecast(*verb, code);
}

}  // namespace mayfly::cli
