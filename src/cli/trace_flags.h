#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/result.h"
#include "trace/load.h"

namespace mayfly::cli {

/// What every verb that reads a trace may be told about it.
struct TraceFlags {
  std::string format{};
  std::string polarity{};
  std::string gap{};
  std::string type{};
  std::string zone{};
  std::string observation{};

  void add_to(CLI::App& verb);
  /// A path, or the bare name of a trace that ships with mayfly.
  Result<Trace> load(const std::string& given) const;
};

}  // namespace mayfly::cli
