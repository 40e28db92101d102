#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cloud/catalog.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::fuzz::require;

void check_duration(std::string_view text) {
  const auto duration = mayfly::parse_duration(text);
  if (!duration) return require(!duration.error().message.empty(), "an error has a message");
  const double s = duration->count();
  require(std::isfinite(s) && s >= 0, "a duration is finite and not negative");
  const auto shown = mayfly::format_duration(*duration);
  const auto again = mayfly::parse_duration(shown);
  if (!again) std::fprintf(stderr, "%g s is shown as '%s'\n", s, shown.c_str());
  require(again.has_value(), "a shown duration can be read");
  if (std::fabs(again->count() - s) > 0.011 * s) std::fprintf(stderr, "%g s is shown as '%s'\n", s, shown.c_str());
  require(std::fabs(again->count() - s) <= 0.011 * s, "a shown duration is rounded by 1 % at most");
}

void check_machines(std::string_view text) {
  const auto machines = mayfly::parse_machines(text);
  if (!machines) return require(!machines.error().message.empty(), "an error has a message");
  require(!machines->empty(), "a list of machines is not empty");
  std::string written;
  for (const auto& [type, count] : *machines) {
    require(!type.empty() && count >= 0, "a machine has a name and a count");
    const auto same = [&, name = type](const auto& other) { return other.type == name; };
    require(std::count_if(machines->begin(), machines->end(), same) == 1, "a type stands once");
    written += fmt::format("{}{}={}", written.empty() ? "" : ",", type, count);
  }
  require(!mayfly::machines_text(*machines).empty(), "machines have a text");
  const auto again = mayfly::parse_machines(written);
  require(again && *again == *machines, "written machines read the same");
}

void check_date(std::string_view text) {
  const auto day = mayfly::parse_date(text);
  if (!day) return require(!day.error().message.empty(), "an error has a message");
  require(text.size() == 10, "a date has ten characters");
  require(*day >= -719528 && *day <= 2932896, "a date lies in the years 0000 to 9999");
}

void check_number(std::string_view text) {
  const auto number = mayfly::parse_number(text);
  if (!number) return;
  require(std::isfinite(*number), "a number is finite");
  require(mayfly::parse_number(fmt::format("{}", *number)) == number, "a written number reads the same");
  const auto integer = mayfly::parse_integer(text);
  require(!integer || *integer == *number, "an integer is the number it is");
}

void check_nearest(std::string_view text) {
  // The word, then what it may mean.
  std::vector<std::string> candidates;
  for (const auto part : mayfly::split(text, ',')) candidates.emplace_back(part);
  const std::string word = candidates.front();
  candidates.erase(candidates.begin());
  const auto near = mayfly::nearest_word(word, candidates);
  const auto has = [&](const std::string& one) {
    return std::find(candidates.begin(), candidates.end(), one) != candidates.end();
  };
  require(!near || has(*near), "the nearest word is one of the candidates");
  constexpr std::size_t kLongestWord = 100;
  require(word.size() > kLongestWord || !has(word) || near == word, "a word is nearest to itself");
  require(mayfly::did_you_mean(word, candidates).empty() == !near, "a question names the nearest word");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  check_duration(text);
  check_machines(text);
  check_date(text);
  check_number(text);
  check_nearest(text);
  const auto trimmed = mayfly::trimmed(text);
  require(trimmed == mayfly::trimmed(trimmed), "trimming twice is trimming once");
  return 0;
}
