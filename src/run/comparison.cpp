#include "run/comparison.h"

#include <algorithm>

#include "base/text.h"

namespace mayfly {
namespace {

/// Of the time that goes into training; half of what was promised, as a look takes longer at times.
constexpr double kShare = 0.0025;
constexpr Seconds kLeast{1};
constexpr Seconds kSecond{5};

/// Of "fc.weight 3f80": "fc.weight".
std::string name_in(const std::string& entry) { return entry.substr(0, entry.rfind(' ')); }
std::string value_in(const std::string& entry) { return entry.substr(entry.rfind(' ') + 1); }

std::string difference(WorkerId one, const std::vector<std::string>& first, WorkerId other,
                       const std::vector<std::string>& second) {
  const auto [a, b] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  if (a == first.end() || b == second.end() || name_in(*a) != name_in(*b))
    return fmt::format("w{} holds {} tensors and settings, w{} {}, and not the same ones", one, first.size(), other,
                       second.size());
  return fmt::format("{} is {} at w{} and {} at w{}", name_in(*a), value_in(*a), one, value_in(*b), other);
}

}  // namespace

std::optional<std::string> Comparison::saw(const std::map<WorkerId, StepDone>& reports) {
  const auto& [one, first] = *reports.begin();
  if (!first.state) {
    Seconds longest{};
    for (const auto& [worker, report] : reports)
      longest = std::max(longest, Seconds(report.compute_s + report.exchange_s + report.wait_s.value_or(0)));
    next_ -= longest;
    return std::nullopt;
  }
  Seconds took{};
  std::optional<std::string> found;
  for (const auto& [worker, report] : reports) {
    took = std::max(took, Seconds(report.compare_s.value_or(0)));
    if (!found && report.state && *report.state != *first.state)
      found = fmt::format("the workers do not hold the same: at sample {}, {}", first.first_sample,
                          difference(one, *first.state, worker, *report.state));
  }
  // The first takes longer: what it needs is loaded with it.
  next_ = std::max(kLeast, std::min(took / kShare, known_ ? Seconds::max() : kSecond));
  known_ = true;
  if (found && agreed_) found = fmt::format("{}; at sample {} they held the same", *found, *agreed_);
  if (!found) agreed_ = first.first_sample;
  return found;
}

}  // namespace mayfly
