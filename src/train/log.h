#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace mayfly {

/// What this process is, for its lines: "worker" unless told. Before the first of them.
void log_as(std::string role);
/// One line on standard error: seconds since the program started, its process, what happened. From any thread.
void log_line(const std::string& text);

template <class... Args>
void log(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace mayfly
