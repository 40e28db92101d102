#include "train/meter.h"

#include <sys/resource.h>

#include <cstdio>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {
namespace {

double cpu_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A line such as "VmHWM:   123456 kB" of /proc/self/status, in MB; 0: not there.
double memory(std::string_view status, std::string_view key) {
  for (const auto line : split(status, '\n')) {
    if (!line.starts_with(key)) continue;
    const auto words = trimmed(line.substr(key.size()));
    return parse_number(words.substr(0, words.find(' '))).value_or(0) * 1024 / 1e6;
  }
  return 0;
}

/// The kernel's mark of the most memory goes back to what is held now.
void forget_peak() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

}  // namespace

void Meter::begin() {
  cpu_s_ = cpu_time();
  forget_peak();
}

Measurement Meter::used() const {
  const auto status = load_text("/proc/self/status");
  return {.cpu_s = cpu_time() - cpu_s_, .peak_mb = status ? memory(*status, "VmHWM:") : 0};
}

}  // namespace mayfly
