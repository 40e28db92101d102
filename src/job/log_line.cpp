#include "job/log_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr double kLargest = 1e15;
constexpr std::size_t kLongest = 20'000;  ///< characters of a line that are looked at

using Spelling = std::pair<std::string_view, LogKey>;
constexpr std::array kSpellings{
    Spelling{"step", LogKey::step},
    Spelling{"_step", LogKey::step},
    Spelling{"steps", LogKey::step},
    Spelling{"global_step", LogKey::step},
    Spelling{"trainer/global_step", LogKey::step},
    Spelling{"train/global_step", LogKey::step},
    Spelling{"iteration", LogKey::step},
    Spelling{"iter", LogKey::step},
    Spelling{"it", LogKey::step},
    Spelling{"update", LogKey::step},
    Spelling{"num_updates", LogKey::step},
    Spelling{"epoch", LogKey::epoch},
    Spelling{"train/epoch", LogKey::epoch},
    Spelling{"loss", LogKey::loss},
    Spelling{"train_loss", LogKey::loss},
    Spelling{"train/loss", LogKey::loss},
    Spelling{"loss/train", LogKey::loss},
    Spelling{"training_loss", LogKey::loss},
    Spelling{"train_loss_step", LogKey::loss},
    Spelling{"train/loss_step", LogKey::loss},
    Spelling{"loss_step", LogKey::loss},
    Spelling{"lm_loss", LogKey::loss},
    Spelling{"value", LogKey::loss},
    Spelling{"wall time", LogKey::clock},
    Spelling{"wall_time", LogKey::clock},
    Spelling{"walltime", LogKey::clock},
    Spelling{"timestamp", LogKey::clock},
    Spelling{"_timestamp", LogKey::clock},
    Spelling{"_runtime", LogKey::clock},
    Spelling{"runtime", LogKey::clock},
    Spelling{"elapsed", LogKey::clock},
    Spelling{"elapsed_s", LogKey::clock},
    Spelling{"time_s", LogKey::clock},
    Spelling{"t_s", LogKey::clock},
    Spelling{"relative time (process)", LogKey::clock},
    Spelling{"time", LogKey::time},
    Spelling{"step_time", LogKey::step_s},
    Spelling{"step_s", LogKey::step_s},
    Spelling{"s/it", LogKey::step_s},
    Spelling{"s/step", LogKey::step_s},
    Spelling{"sec/step", LogKey::step_s},
    Spelling{"sec/batch", LogKey::step_s},
    Spelling{"s/iter", LogKey::step_s},
    Spelling{"sec_per_step", LogKey::step_s},
    Spelling{"iter_time", LogKey::step_s},
    Spelling{"batch_time", LogKey::step_s},
    Spelling{"ms/step", LogKey::step_ms},
    Spelling{"ms/it", LogKey::step_ms},
    Spelling{"ms/batch", LogKey::step_ms},
    Spelling{"step_ms", LogKey::step_ms},
    Spelling{"step_time_ms", LogKey::step_ms},
    Spelling{"it/s", LogKey::steps_per_s},
    Spelling{"steps/s", LogKey::steps_per_s},
    Spelling{"step/s", LogKey::steps_per_s},
    Spelling{"steps_per_second", LogKey::steps_per_s},
    Spelling{"train_steps_per_second", LogKey::steps_per_s},
    Spelling{"steps_per_s", LogKey::steps_per_s},
    Spelling{"samples/s", LogKey::samples_per_s},
    Spelling{"samples/sec", LogKey::samples_per_s},
    Spelling{"samples_per_s", LogKey::samples_per_s},
    Spelling{"samples_per_second", LogKey::samples_per_s},
    Spelling{"train_samples_per_second", LogKey::samples_per_s},
    Spelling{"images/s", LogKey::samples_per_s},
    Spelling{"images/sec", LogKey::samples_per_s},
    Spelling{"img/s", LogKey::samples_per_s},
    Spelling{"examples/s", LogKey::samples_per_s},
    Spelling{"examples/sec", LogKey::samples_per_s},
    Spelling{"batch_size", LogKey::batch},
    Spelling{"bs", LogKey::batch},
};

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return small;
}

/// A number with letters or nothing behind it: "0.12s/it" is 0.12 and "s/it".
struct Measure {
  double value = 0;
  std::string unit{};
};
std::optional<Measure> measure(std::string_view word) {
  std::size_t end = 0;
  while (end < word.size() && (std::isdigit(static_cast<unsigned char>(word[end])) != 0 || word[end] == '.' ||
                               word[end] == '-' || word[end] == '+' ||
                               ((word[end] == 'e' || word[end] == 'E') && end > 0 && end + 1 < word.size() &&
                                std::isalpha(static_cast<unsigned char>(word[end + 1])) == 0)))
    ++end;
  const auto value = parse_number(word.substr(0, end));
  if (!value || std::fabs(*value) > kLargest) return std::nullopt;
  return Measure{*value, lower(word.substr(end))};
}

/// "00:12" or "1:02:03" as seconds.
std::optional<double> minutes(std::string_view word) {
  const auto parts = split(word, ':');
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  double seconds = 0;
  for (const auto part : parts) {
    const auto value = parse_number(part);
    if (!value || *value < 0 || part.empty() || std::isdigit(static_cast<unsigned char>(part[0])) == 0)
      return std::nullopt;
    seconds = seconds * 60 + *value;
  }
  return seconds;
}

/// "100/1000".
std::optional<std::pair<double, double>> part_of(std::string_view word) {
  const auto slash = word.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto done = parse_number(word.substr(0, slash));
  const auto of = parse_number(word.substr(slash + 1));
  if (!done || !of || *done < 0 || *of < 1 || *done > *of || *of > kLargest) return std::nullopt;
  return std::pair(*done, *of);
}

/// A date and time at the beginning, as loggers write it: `2026-01-31 07:10:55,123`, perhaps in brackets.
std::optional<double> stamp(std::string_view line) {
  while (!line.empty() && (line[0] == '[' || line[0] == ' ')) line.remove_prefix(1);
  constexpr std::size_t kShortest = 19;
  if (line.size() < kShortest || std::isdigit(static_cast<unsigned char>(line[0])) == 0) return std::nullopt;
  std::size_t end = kShortest;
  std::string text(line.substr(0, kShortest));
  if (end < line.size() && (line[end] == ',' || line[end] == '.')) {
    text += '.';
    for (++end; end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0; ++end) text += line[end];
    if (text.back() == '.') text.pop_back();
  }
  return parse_time(text);
}

/// Words of a line: blanks, commas, bars and '=' divide them; brackets are words, so that what is inside is known to
/// be.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  const auto cut = [&](std::size_t end) {
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool colon =
        c == ':' && (i + 1 == line.size() || std::isdigit(static_cast<unsigned char>(line[i + 1])) == 0 || i == 0 ||
                     std::isdigit(static_cast<unsigned char>(line[i - 1])) == 0);
    if (c == '[' || c == ']' || c == '(' || c == ')' || c == '<') {
      cut(i);
      words.push_back(line.substr(i, 1));
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',' || c == '|' || c == '=' || c == ';' ||
               colon) {
      cut(i);
    }
  }
  cut(line.size());
  return words;
}

/// Walks through the words of one line.
class Reader {
 public:
  explicit Reader(std::string_view line) : words_(words_of(line)) {}

  LogPoint point() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      if (!read_fraction() && !read_unit()) read_key();
    }
    if (evaluates_) point_.loss.reset();
    return point_;
  }

 private:
  std::string_view word(std::size_t ahead = 0) const {
    return at_ + ahead < words_.size() ? words_[at_ + ahead] : std::string_view();
  }

  /// "Accuracy: 9000/10000" is no progress.
  bool counts_something_else() const {
    if (at_ == 0 || std::isalpha(static_cast<unsigned char>(words_[at_ - 1][0])) == 0) return false;
    const std::string before = lower(words_[at_ - 1]);
    return before != "batch" && !log_key(before);
  }

  /// "640/60000", within the epoch where the line has one.
  bool read_fraction() {
    const auto part = part_of(word());
    if (!part || point_.done || counts_something_else()) return part.has_value();
    const bool in_bracket = at_ > 0 && words_[at_ - 1] == "[";
    point_.done = part->first;
    point_.of = part->second;
    // `Epoch 1 [640/60000]` counts samples, `Epoch: [1][10/5005]` and everything else steps.
    point_.done_samples = in_bracket && point_.epoch && at_ >= 2 && words_[at_ - 2] != "]" && after_epoch_ == at_ - 1;
    // The clock of a progress bar: `100/1000 [00:12<01:48`.
    if (word(1) == "[" && word(3) == "<") {
      if (const auto clock = minutes(word(2))) point_.clock = clock;
    }
    return true;
  }

  /// "0.12s/it", "8.3 it/s", "4ms/step".
  bool read_unit() {
    const auto number = measure(word());
    if (!number) return false;
    const bool apart = number->unit.empty();
    const auto key = log_key(apart ? lower(word(1)) : number->unit);
    const bool unit =
        key == LogKey::step_s || key == LogKey::step_ms || key == LogKey::steps_per_s || key == LogKey::samples_per_s;
    if (unit) put(point_, *key, number->value);
    return true;
  }

  void read_key() {
    const std::string name = lower(word());
    evaluates_ = evaluates_ || name == "test" || name == "val" || name == "eval" || name == "validation" ||
                 name == "evaluation" || name == "valid";
    const auto key = log_key(name);
    if (!key || *key == LogKey::step_ms || *key == LogKey::steps_per_s) return;
    std::size_t ahead = word(1) == "[" || word(1) == "(" ? 2 : 1;
    if (const auto part = part_of(word(ahead)); part && *key == LogKey::step) {
      put(point_, *key, part->first);
      point_.of = part->second;
      at_ += ahead;
      return;
    }
    const auto part = part_of(word(ahead));
    const auto number = part && *key == LogKey::epoch ? Measure{part->first, ""} : measure(word(ahead));
    if (!number) return;
    // "loss 2.3 s/it" has lost its number; "time 3.1s" has a unit that says nothing new.
    if (!number->unit.empty() && number->unit != "s" && number->unit != "sec") return;
    put(point_, *key, number->value);
    at_ += ahead;
    if (*key == LogKey::epoch) after_epoch_ = at_ + 1;
  }

  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
  std::size_t after_epoch_ = 0;  ///< the word behind the epoch's number
  bool evaluates_ = false;       ///< its loss is not that of the training
  LogPoint point_{};
};

LogPoint parse_json_line(const Json& json) {
  LogPoint point;
  for (const auto& [key, value] : json.items()) {
    const auto known = log_key(lower(key));
    if (known && value.is_number()) put(point, *known, value.get<double>());
    if (known == LogKey::clock && value.is_string()) point.clock = parse_time(value.get<std::string>());
  }
  return point;
}

}  // namespace

std::optional<LogKey> log_key(std::string_view name) {
  const std::string small = lower(trimmed(name));
  const auto found = std::find_if(kSpellings.begin(), kSpellings.end(),
                                  [&](const Spelling& spelling) { return spelling.first == small; });
  return found == kSpellings.end() ? std::nullopt : std::optional(found->second);
}

void put(LogPoint& point, LogKey key, double value) {
  if (!std::isfinite(value) || std::fabs(value) > kLargest) return;
  if (key != LogKey::loss && value < 0) return;
  const bool nothing = value == 0;
  switch (key) {
    case LogKey::step:
      point.step = value;
      return;
    case LogKey::epoch:
      point.epoch = value;
      return;
    case LogKey::loss:
      if (!point.loss) point.loss = value;
      return;
    case LogKey::clock:
      point.clock = value;
      return;
    case LogKey::time:
      point.time = value;
      return;
    case LogKey::step_s:
      if (!nothing) point.step_s = value;
      return;
    case LogKey::step_ms:
      if (!nothing) point.step_s = value / 1e3;
      return;
    case LogKey::steps_per_s:
      if (!nothing && std::isfinite(1 / value)) point.step_s = 1 / value;
      return;
    case LogKey::samples_per_s:
      if (!nothing) point.samples_per_s = value;
      return;
    case LogKey::batch:
      if (!nothing) point.batch = value;
      return;
  }
}

LogPoint parse_log_line(std::string_view line) {
  line = trimmed(line.substr(0, kLongest));
  if (line.empty()) return {};
  if (line.front() == '{') {
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_object()) return parse_json_line(json);
    // Python prints dictionaries with single quotes, as the trainers of Hugging Face do.
    std::string text(line);
    std::replace(text.begin(), text.end(), '\'', '"');
    const Json python = Json::parse(text, nullptr, false);
    if (python.is_object()) return parse_json_line(python);
  }
  LogPoint point = Reader(line).point();
  if (const auto time = stamp(line); time && !point.clock) point.clock = time;
  return point;
}

}  // namespace mayfly
