#include "run/step_watch.h"

#include <algorithm>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::size_t kStepsKept = 50;
/// From the word to explain itself to its end.
constexpr Seconds kToExplain{1};
constexpr std::string_view kWaits = "exchange";

}  // namespace

void StepWatch::heard(WorkerId worker, const std::optional<std::string>& doing) {
  if (const auto found = hands_.find(worker); found != hands_.end()) found->second.doing = doing;
}

void StepWatch::broke(WorkerId worker, std::int64_t formation) {
  if (const auto found = hands_.find(worker); found != hands_.end() && found->second.work.formation <= formation)
    hands_.erase(found);
}

void StepWatch::done(Seconds now, WorkerId worker, Work work) {
  const auto found = hands_.find(worker);
  if (found == hands_.end() || found->second.work != work) return;
  recent_.push_back(now - found->second.since);
  if (recent_.size() > kStepsKept) recent_.pop_front();
  hands_.erase(found);
}

Seconds StepWatch::limit() const {
  if (recent_.empty()) return std::max(options_.first, options_.floor);
  return std::max(options_.floor, options_.times * *std::max_element(recent_.begin(), recent_.end()));
}

StepWatch::Findings StepWatch::look(Seconds now) {
  Findings findings;
  std::vector<Hand*> waiting;
  const Seconds most = limit();
  for (auto& [worker, hand] : hands_) {
    if (now - hand.since <= most) continue;
    if (hand.doing == kWaits) {
      waiting.push_back(&hand);
    } else if (!hand.asked) {
      hand.asked = now;
      findings.explain.push_back(worker);
    } else if (now - *hand.asked > kToExplain) {
      findings.lose.push_back(worker);
    }
  }
  const bool nobody = std::none_of(hands_.begin(), hands_.end(), [](const auto& entry) { return entry.second.asked; });
  findings.stuck = nobody && !waiting.empty();
  // What is done about it takes its time.
  if (findings.stuck) {
    for (Hand* const hand : waiting) hand->since = now;
  }
  return findings;
}

std::vector<WorkerId> StepWatch::busy() const {
  std::vector<WorkerId> found;
  for (const auto& [worker, hand] : hands_) {
    if (hand.doing != kWaits) found.push_back(worker);
  }
  return found;
}

std::string StepWatch::story(Seconds now, WorkerId worker) const {
  const auto found = hands_.find(worker);
  if (found == hands_.end()) return "has nothing in hand";
  const auto& doing = found->second.doing;
  return fmt::format("at its step for {}{}, where {} is the limit", format_duration(now - found->second.since),
                     doing ? fmt::format(" ({})", *doing) : "", format_duration(limit()));
}

}  // namespace mayfly
