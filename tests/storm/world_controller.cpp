// The controller's process: a session, and what is done of what it wants done.

#include <algorithm>

#include "storm/puppet.h"
#include "storm/story.h"
#include "storm/world.h"

namespace mayfly::storm {
namespace {

constexpr Seconds kListEvery{10};

}  // namespace

void World::start_session() {
  if (over_) return;
  ++incarnation_;
  dead_ = false;
  session_ = std::make_unique<Session>(inputs_, [this](const MachineRole& role) { return engine_.expected(role); });
  const Seconds time = session_->restore(lines_, notes_);
  stood_still_ = agenda_.now() - time;
  session_->acts();  // only what the store has already
  engine_.connect({.seen = [this](const Sighting& sight) {
    if (!over_) inventory_.seen(session_time(), sight);
    tell([&] { return "seen " + text_of(sight); }, [&](Session& session, Seconds now) { session.seen(now, sight); });
  }});
  if (record_) told_.push_back(fmt::format("{} starts", time.count()));
  inventory_.began(time);
  engine_.adopt(session_->fleet().kept());
  tell([] { return "begin"; }, [](Session& session, Seconds now) { session.begin(now); });
  const int incarnation = incarnation_;
  const auto list = [this, incarnation](const auto& again) -> void {
    agenda_.after(kListEvery, [this, incarnation, again] {
      if (incarnation != incarnation_ || !session_) return;
      const auto sights = engine_.sights();
      if (!over_) inventory_.listed(session_time(), sights);
      tell([&] { return "listed " + text_of(sights); },
           [&](Session& session, Seconds now) { session.listed(now, sights); });
      again(again);
    });
  };
  list(list);
}

void World::crash() {
  if (!session_ || over_) return;
  ++crashes_;
  if (record_) told_.push_back(fmt::format("{} dies", session_time().count()));
  session_.reset();
  ++incarnation_;
  engine_.disconnect();
  std::vector<int> all;
  for (const auto& [number, connection] : connections_) all.push_back(number);
  // What a process has written its system may still send when the process is dead.
  for (const int number : all) close(number, rng_.chance(0.5) ? 4 * delay() : Seconds(0));
  current_.clear();
  agenda_.after(Seconds(0.1 + rng_.exponential(2)), [this] { start_session(); });
}

void World::perform() {
  if (std::exchange(performing_, true)) return;
  for (auto acts = session_->acts(); !acts.empty() && !dead_; acts = session_->acts()) {
    // Anything of what is wanted may be done when the process dies, as long as it is the first of it.
    const bool dies = rng_.chance(weather_.crash_in_act);
    const std::size_t most =
        dies ? static_cast<std::size_t>(rng_.below(static_cast<int>(acts.size()) + 1)) : acts.size();
    for (std::size_t i = 0; i < most; ++i) {
      if (record_) told_.push_back("  " + text_of(acts[i]));
      std::visit([this](const auto& act) { perform(act); }, acts[i]);
    }
    dead_ = dies && !over_;
  }
  performing_ = false;
  if (dead_) return crash();
  watch_clock();
}

void World::watch_clock() {
  const auto due = session_ ? session_->due() : std::nullopt;
  if (!due || over_) return;
  const int alarm = ++alarm_;
  // A hair later than that: the sum is rounded, and a timer is never early.
  agenda_.at(*due + stood_still_ + Seconds(1e-6), [this, alarm, incarnation = incarnation_] {
    if (alarm != alarm_ || incarnation != incarnation_) return;
    tell([] { return "pass"; }, [](Session& session, Seconds now) { session.pass(now); });
    if (session_ && !over_) inventory_.look(session_time());
  });
}

void World::perform(const Letter& letter) {
  inventory_.wrote(session_time(), letter);
  // A negative number is a connection that belongs to nobody yet.
  const auto current = current_.find(letter.to);
  const int number = letter.to < 0 ? -letter.to : current == current_.end() ? 0 : current->second;
  const auto found = connections_.find(number);
  if (found == connections_.end() || !found->second.open) return;
  const Seconds time = std::max(found->second.last_out, agenda_.now() + delay());
  found->second.last_out = time;
  agenda_.at(time, [this, number, message = letter.message] {
    const auto there = connections_.find(number);
    if (there == connections_.end()) return;
    const bool comes = there->second.open || agenda_.now() < there->second.drains;
    if (comes && there->second.puppet->connection() == number) there->second.puppet->hear(message);
  });
}

void World::perform(const Cut& act) {
  inventory_.closed(act.worker);
  const auto found = current_.find(act.worker);
  if (found == current_.end()) return;
  const int number = found->second;
  current_.erase(found);
  close(number);
}

void World::perform(const Ask& act) {
  for (const Order& order : act.orders) {
    const auto noted = notes_.find("fleet");
    const std::string entry = fmt::format("\"launch\":{},", order.launch);
    account_.require(noted != notes_.end() && noted->second.find(entry) != std::string::npos,
                     "launch {} is ordered before it is written down", order.launch);
  }
  for (const Order& order : act.orders) inventory_.ordered(session_time(), order);
  engine_.order(act.orders);
  for (const int launch : act.tells) engine_.tell(launch);
  check_ends(act.ends);
  for (const int launch : act.ends) engine_.end(launch);
  check_held();
}

void World::perform(const Record& act) {
  if (const auto* back = std::get_if<RolledBack>(&act.event.event); back != nullptr && is_news(act))
    check_rollback(static_cast<std::int64_t>(back->sample.value_or(0)));
  account_.stored(act);
  inventory_.recorded(act);
  lines_.push_back(journal_line(act.event.time, act.event.event));
  if (!act.key.empty()) notes_[act.key] = act.note;
}

void World::perform(const JournalLine& act) { lines_.push_back(act.text); }

void World::perform(const Note& act) {
  notes_[act.key] = act.value;
  if (act.key != "formation") return;
  account_.formed(std::stoll(act.value));
  inventory_.formed(session_time());
}

bool World::save(const std::string& path, const Weights& weights, const std::vector<SampleRange>& ledger) {
  if (rng_.chance(weather_.no_checkpoint)) return false;
  account_.saved(weights, ledger);
  std::erase_if(vault_, [&](const Saved& saved) { return saved.path == path; });
  vault_.push_back({path, weights, ledger});
  return true;
}

const Saved* World::checkpoint(const std::string& path) const {
  const auto found = std::find_if(vault_.begin(), vault_.end(), [&](const Saved& saved) { return saved.path == path; });
  return found == vault_.end() ? nullptr : &*found;
}

const Saved* World::newest() const {
  const auto found = std::max_element(
      vault_.begin(), vault_.end(), [](const Saved& a, const Saved& b) { return a.weights.sample < b.weights.sample; });
  return found == vault_.end() ? nullptr : &*found;
}

void World::perform(const Seek&) {
  const int incarnation = incarnation_;
  agenda_.after(delay(), [this, incarnation] {
    FoundCheckpoint found;
    if (const Saved* saved = newest())
      found.checkpoint = SavedState{saved->path, {.sample = saved->weights.sample, .ledger = saved->ledger}};
    agenda_.after(delay(), [this, incarnation, found] {
      if (incarnation != incarnation_) return;
      tell([&] { return "sought " + text_of(found); },
           [&](Session& session, Seconds now) { session.sought(now, found); });
    });
  });
}

void World::perform(const Publish& act) {
  const int incarnation = incarnation_;
  agenda_.after(delay(), [this, incarnation, checkpoint = act.checkpoint] {
    // One is kept.
    if (const Saved* saved = this->checkpoint(checkpoint.path)) {
      const std::int64_t sample = saved->weights.sample;
      std::erase_if(vault_, [&](const Saved& other) { return other.weights.sample < sample; });
    }
    agenda_.after(delay(), [this, incarnation, checkpoint] {
      if (incarnation != incarnation_) return;
      tell([&] { return "published " + encoded<ToController>(FromMember(checkpoint)); },
           [&](Session& session, Seconds now) { session.published(now, checkpoint, {}); });
    });
  });
}

void World::perform(const Close&) { over_ = true; }

}  // namespace mayfly::storm
