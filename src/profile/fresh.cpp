#include "profile/fresh.h"

#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "data/new_file.h"

namespace mayfly {

std::filesystem::path profile_beside(const std::filesystem::path& job_file) {
  return job_file.parent_path() / (job_file.stem().string() + ".profile.json");
}

std::string text_hash(std::string_view text) { return fmt::format("{:016x}", xxh3_of(text)); }

std::string machine_name() {
  std::string model = "unknown processor";
  if (const auto text = load_text("/proc/cpuinfo")) {
    for (const auto line : split(*text, '\n')) {
      if (!line.starts_with("model name")) continue;
      model = std::string(trimmed(line.substr(line.find(':') + 1)));
      break;
    }
  }
  return fmt::format("{}, {} cores", model, std::thread::hardware_concurrency());
}

std::optional<std::string> staleness(const Profile& profile, std::string_view job_text, const std::string& machine,
                                     double now) {
  if (profile.origin.job.empty()) return "it was not measured from a job file";
  if (profile.origin.job != text_hash(job_text)) return "the job file has changed since";
  if (profile.origin.machine != machine)
    return fmt::format("it was measured on another machine ({})", profile.origin.machine);
  const auto day = parse_date(profile.origin.date);
  if (!day) return "it has no date";
  const Seconds age(now - *day * 86400.0);
  if (age > kFreshFor) return fmt::format("it is from {}", profile.origin.date);
  return std::nullopt;
}

}  // namespace mayfly
