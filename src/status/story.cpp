#include "status/story.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::size_t kRemembered = 512;
constexpr std::size_t kAtOnce = std::size_t{64} << 20;

/// As many bytes from there on, or all there are.
std::string read_at(const OpenFile& file, std::size_t place, std::size_t most) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0) return {};
  const auto end = static_cast<std::size_t>(status.st_size);
  std::string bytes(std::min(most, end - std::min(end, place)), '\0');
  std::size_t read = 0;
  while (read < bytes.size()) {
    const auto more =
        ::pread(file.descriptor(), bytes.data() + read, bytes.size() - read, static_cast<off_t>(place + read));
    if (more <= 0) break;
    read += static_cast<std::size_t>(more);
  }
  bytes.resize(read);
  return bytes;
}

std::string text(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

double number(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

std::string event_words(const Json& line) {
  const std::string event = text(line, "event");
  const std::string worker = text(line, "worker");
  if (event == "joined") {
    const double price = number(line, "usd_per_hour");
    return fmt::format("{} joins: {}, {}{}", worker, text(line, "type"), text(line, "market"),
                       price > 0 ? fmt::format(", {:g} USD/h", price) : "");
  }
  if (event == "rolled-back") return fmt::format("goes on from sample {:.0f}", number(line, "sample"));
  if (event == "state-lost") return "the servers' state is gone";
  if (event == "charged")
    return fmt::format("{:.4f} USD for a machine that never joined: {}", number(line, "cost_usd"), text(line, "type"));
  if (event == "estimated") return fmt::format("the target is {:.0f} samples", number(line, "samples"));
  return {};  // notice, lost and checkpointed have a remark beside them
}

std::string command_words(const Json& line) {
  const std::string command = text(line, "command");
  if (command == "assign") {
    const auto members = line.find("members");
    const std::size_t count = members != line.end() && members->is_array() ? members->size() : 0;
    return fmt::format("{} machine{} train{} from sample {:.0f}", count, count == 1 ? "" : "s", count == 1 ? "s" : "",
                       number(line, "next_sample"));
  }
  if (command == "pause") return "nobody trains: " + text(line, "why");
  if (command == "release") return text(line, "worker") + " is given back";
  if (command == "finish")
    return text(line, "why") == "target" ? "the target is reached and saved" : "the end: " + text(line, "why");
  return {};
}

}  // namespace

std::optional<std::string> story_line(std::string_view journal_line) {
  const Json line = parsed_json(journal_line);
  if (!line.is_object() || line.contains("ignored")) return std::nullopt;
  std::string words = text(line, "remark");
  if (words.empty()) words = line.contains("event") ? event_words(line) : command_words(line);
  if (words.empty()) return std::nullopt;
  const double time = number(line, "t_s");
  return fmt::format("{:>9}  {}", format_duration(Seconds(std::round(std::max(0.0, time) * 10) / 10)), words);
}

LineTail::Lines LineTail::next(bool all) {
  Lines found;
  const auto file = open_own_file(path_, O_RDONLY);
  if (!file) return found;
  if (read_at(*file, place_ - last_.size(), last_.size()) != last_) {
    found.anew = true;
    place_ = 0;
    last_.clear();
  }
  const std::string text = read_at(*file, place_, kAtOnce);
  const bool more = text.size() == kAtOnce;
  const auto end = text.rfind('\n');
  const std::size_t whole = (all && !more) || (more && end == std::string::npos) ? text.size()
                            : end == std::string::npos                           ? 0
                                                                                 : end + 1;
  for (const std::string_view line : split(std::string_view(text).substr(0, whole), '\n'))
    found.lines.emplace_back(line);
  if (whole > 0 && text[whole - 1] == '\n') found.lines.pop_back();
  if (whole == 0) found.lines.clear();
  place_ += whole;
  last_ = (last_ + text.substr(0, whole));
  if (last_.size() > kRemembered) last_.erase(0, last_.size() - kRemembered);
  return found;
}

}  // namespace mayfly
