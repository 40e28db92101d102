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

void Meter::begin(const LoaderCounts& loader) {
  loader_ = loader;
  cpu_s_ = cpu_time();
  forget_peak();
}

Measurement Meter::used(const LoaderCounts& loader) const {
  const auto status = load_text("/proc/self/status");
  return {.cpu_s = cpu_time() - cpu_s_,
          .peak_mb = status ? memory(*status, "VmHWM:") : 0,
          .held_mb = status ? memory(*status, "VmRSS:") : 0,
          .fetch_s = loader.fetch_s - loader_.fetch_s,
          .prep_s = loader.prep_s - loader_.prep_s,
          .wait_s = loader.wait_s - loader_.wait_s,
          .fetched_mb = (loader.fetched_bytes - loader_.fetched_bytes) / 1e6,
          .storage_mb = (loader.storage_bytes - loader_.storage_bytes) / 1e6,
          .hits = loader.hits - loader_.hits,
          .from_peers = loader.from_peers - loader_.from_peers,
          .from_storage = loader.from_storage - loader_.from_storage,
          .peers_failed = loader.peers_failed - loader_.peers_failed,
          .prepared = loader.prepared - loader_.prepared,
          .discarded = loader.discarded - loader_.discarded};
}

}  // namespace mayfly
