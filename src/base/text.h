#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace mayfly {

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

/// For a terminal: control characters other than line end and tab, and bytes that are no UTF-8, as `\\x1b`. What a file
/// holds may not move the cursor, set the window's title or hide a line.
std::string printable(std::string_view text);

/// Where a text stops being UTF-8; its size if it is valid to the end.
std::size_t valid_utf8(std::string_view text);

/// The whole text as a finite number; nothing for "", "1x", "nan", "inf" or what overflows.
std::optional<double> parse_number(std::string_view text);
/// The whole text as a decimal integer that fits an int.
std::optional<int> parse_integer(std::string_view text);

/// `90s 15m 6h 2d 1h30m`, or a bare number of seconds. Never negative.
Result<Seconds> parse_duration(std::string_view text);
/// The same language, shortest readable form: `1h30m`, `42m`, `17.3s`.
std::string format_duration(Seconds time);

/// A calendar day as `YYYY-MM-DD`, checked; its number of days since 1970-01-01.
Result<int> parse_date(std::string_view text);

/// `2026-01-31T07:10:55Z`, or a blank for the T; the seconds may have a fraction, the zone may be Z, +hh:mm, -hh:mm or
/// nothing, which counts as UTC. Seconds since 1970; nothing for any other text. The years are 1970 to 9999.
std::optional<double> parse_time(std::string_view text);
/// The same, to the second, in UTC.
std::string format_time(double unix_seconds);

/// The candidate closest in spelling, if it is close enough to be a slip of the keys.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);
/// " (did you mean 'x'?)", or "" where nothing is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

/// What YAML can hold as a key (1,024 bytes, escaped), and a person read: no control character, and no more bytes.
inline constexpr std::size_t kLongestName = 200;
bool is_name(std::string_view text);

}  // namespace mayfly
