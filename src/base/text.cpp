#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <numeric>

namespace mayfly {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::size_t valid_utf8(std::string_view text) {
  const auto length_of = [](unsigned char lead) -> std::size_t {
    if (lead < 0x80) return 1;
    if (lead < 0xc2) return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  };
  // Longer than need be, half of a pair, or beyond the last character: by the first two bytes.
  const auto other = [](unsigned char lead, unsigned char next) {
    return (lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) || (lead == 0xf0 && next < 0x90) ||
           (lead == 0xf4 && next > 0x8f);
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = length_of(lead);
    if (length == 0 || i + length > text.size()) return i;
    if (length > 1 && other(lead, static_cast<unsigned char>(text[i + 1]))) return i;
    for (std::size_t j = 1; j < length; ++j) {
      if ((static_cast<unsigned char>(text[i + j]) & 0xc0) != 0x80) return i;
    }
    i += length;
  }
  return text.size();
}

std::string printable(std::string_view text) {
  std::string shown;
  const auto escape = [&](std::string_view bytes) {
    for (const char c : bytes) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  };
  for (std::size_t valid = 0; !text.empty();) {
    if (valid == 0) valid = valid_utf8(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009F are control characters too, two bytes each.
    const bool high = valid > 1 && byte == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const bool low = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    const std::size_t size = high ? 2 : 1;
    valid == 0 || high || low ? escape(text.substr(0, size)) : static_cast<void>(shown += text[0]);
    text.remove_prefix(size);
    valid -= std::min(valid, size);
  }
  return shown;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<int> parse_integer(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

Result<Seconds> parse_duration(std::string_view text) {
  const auto wanted = [&] { return fail("duration '{}': want for example 90s, 15m, 6h, 2d or 1h30m", text); };
  if (const auto bare = parse_number(text)) {
    if (*bare < 0) return wanted();
    return Seconds(*bare);
  }
  Seconds total{0};
  double previous_unit = INFINITY;
  std::string_view rest = text;
  if (rest.empty()) return wanted();
  while (!rest.empty()) {
    const auto unit_at = rest.find_first_of("smhd");
    if (unit_at == std::string_view::npos) return wanted();
    const auto amount = parse_number(rest.substr(0, unit_at));
    const char letter = rest[unit_at];
    const double unit = letter == 's' ? 1 : letter == 'm' ? 60 : letter == 'h' ? 3600 : 86400;
    // Units fall from left to right: "30m1h" is a slip, not a duration.
    if (!amount || *amount < 0 || unit >= previous_unit) return wanted();
    total += Seconds(*amount * unit);
    previous_unit = unit;
    rest.remove_prefix(unit_at + 1);
  }
  if (!std::isfinite(total.count())) return wanted();
  return total;
}

std::string format_duration(Seconds time) {
  const double s = time.count();
  if (!std::isfinite(s)) return "never";
  if (s < 60) return fmt::format("{:.3g}s", s);
  if (s > 1e12) return fmt::format("{:.3g}d", s / 86400);
  const auto minutes = static_cast<long long>(std::llround(s / 60));
  if (minutes < 60) {
    const auto whole = static_cast<long long>(std::llround(s));
    return whole % 60 == 0 ? fmt::format("{}m", whole / 60) : fmt::format("{}m{}s", whole / 60, whole % 60);
  }
  if (minutes < 48 * 60) {
    return minutes % 60 == 0 ? fmt::format("{}h", minutes / 60) : fmt::format("{}h{}m", minutes / 60, minutes % 60);
  }
  const long long hours = std::llround(s / 3600);
  return hours % 24 == 0 ? fmt::format("{}d", hours / 24) : fmt::format("{}d{}h", hours / 24, hours % 24);
}

Result<int> parse_date(std::string_view text) {
  const auto parts = split(text, '-');
  if (parts.size() == 3 && parts[0].size() == 4 && parts[1].size() == 2 && parts[2].size() == 2) {
    const auto y = parse_integer(parts[0]);
    const auto m = parse_integer(parts[1]);
    const auto d = parse_integer(parts[2]);
    if (y && m && d && *m > 0 && *d > 0) {
      const auto date = std::chrono::year(*y) / *m / *d;
      if (date.ok()) return std::chrono::sys_days(date).time_since_epoch().count();
    }
  }
  return fail("date '{}': want YYYY-MM-DD", text);
}

namespace {

/// Two digits at `at`, up to `most`; -1 for anything else.
int two_digits(std::string_view text, std::size_t at, int most) {
  const auto digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  if (!digit(at) || !digit(at + 1)) return -1;
  const int value = (text[at] - '0') * 10 + (text[at + 1] - '0');
  return value <= most ? value : -1;
}

/// Seconds east of UTC that "Z", "" or "+hh:mm" stand for.
std::optional<int> zone_offset(std::string_view zone) {
  if (zone.empty() || zone == "Z") return 0;
  const int hours = two_digits(zone, 1, 23);
  const int minutes = two_digits(zone, 4, 59);
  const bool whole = zone.size() == 6 && (zone[0] == '+' || zone[0] == '-') && zone[3] == ':';
  if (!whole || hours < 0 || minutes < 0) return {};
  return (zone[0] == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
}

}  // namespace

std::optional<double> parse_time(std::string_view text) {
  constexpr std::size_t kShortest = 19;
  if (text.size() < kShortest || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ')) return {};
  if (text[13] != ':' || text[16] != ':') return {};
  const int century = two_digits(text, 0, 99);
  const int year = two_digits(text, 2, 99);
  const int month = two_digits(text, 5, 12);
  const int day = two_digits(text, 8, 31);
  const int hour = two_digits(text, 11, 23);
  const int minute = two_digits(text, 14, 59);
  const int second = two_digits(text, 17, 59);
  if (std::min({century, year, hour, minute, second}) < 0 || month <= 0 || day <= 0) return {};
  const auto date = std::chrono::year(century * 100 + year) / month / day;
  if (!date.ok() || date.year() < std::chrono::year(1970)) return {};
  std::string_view rest = text.substr(kShortest);
  double fraction = 0;
  if (rest.starts_with('.')) {
    const auto end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    const auto parsed = parse_number(rest.substr(0, end));
    if (end < 2 || !parsed) return {};
    fraction = *parsed;
    rest.remove_prefix(end);
  }
  const auto offset = zone_offset(rest);
  if (!offset) return {};
  const auto days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  const double time = 86400 * days + hour * 3600 + minute * 60 + second - *offset + fraction;
  return time < 0 ? std::optional<double>() : time;
}

std::string format_time(double unix_seconds) {
  const double whole_days = std::floor(unix_seconds / 86400);
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(static_cast<int>(whole_days)))};
  const auto second = static_cast<int>(unix_seconds - whole_days * 86400);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                     second / 60 % 60, second % 60);
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates) {
  // A hostile key may be megabytes long; no slip of the keys is.
  if (word.size() > 100) return {};
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const auto near = nearest_word(word, candidates);
  return near ? fmt::format(" (did you mean '{}'?)", *near) : std::string();
}

bool is_name(std::string_view text) {
  return text.size() <= kLongestName && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

}  // namespace mayfly
