#include "train/log.h"

#include <unistd.h>

#include <chrono>

namespace mayfly {
namespace {

std::string own_role = "worker";

}  // namespace

void log_as(std::string role) { own_role = std::move(role); }

void log_line(const std::string& text) {
  static const auto start = std::chrono::steady_clock::now();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const auto line = fmt::format("{:8.3f} {}[{}] {}\n", time.count(), own_role, ::getpid(), text);
  // One write, so that lines of several workers in one file stay whole.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace mayfly
