#include "engine/asked_engine.h"

#include <algorithm>

#include "base/file.h"
#include "base/how_many.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "engine/machine_script.h"

namespace mayfly {
namespace {

constexpr Seconds kLookSoon{1};
constexpr std::size_t kLastWords = 2000;
/// A command line holds as many names easily.
constexpr std::size_t kMostAtOnce = 500;
/// Programs that finish() waits for, and with each of them.
constexpr int kLastPrograms = 6;
constexpr Seconds kLastPatience{60};

}  // namespace

AskedEngine::AskedEngine(Loop& loop, std::unique_ptr<Provider> provider, RunTerms terms, Calls calls)
    : loop_(loop),
      provider_(std::move(provider)),
      terms_(std::move(terms)),
      calls_(std::move(calls)),
      look_timer_(loop) {}

Expectation AskedEngine::expected(const MachineRole& role) const { return provider_->expected(role); }

void AskedEngine::see(Sighting sight) {
  // Never from within a call: the caller that ordered is in the middle of something.
  loop_.post([this, here = std::weak_ptr(here_), sight = std::move(sight)] {
    if (!here.expired() && calls_.seen) calls_.seen(sight);
  });
}

void AskedEngine::say(const std::string& text) {
  loop_.post([this, here = std::weak_ptr(here_), text] {
    if (!here.expired() && calls_.said) calls_.said(text);
  });
}

Sighting AskedEngine::sight_of(int launch, const Machine& machine) const {
  Sighting sight{.launch = launch, .stage = machine.stage, .where = machine.where};
  if (machine.stage != Sighting::Stage::ordered) sight.age = std::max(Seconds(0), terms_.now() - machine.since);
  return sight;
}

std::vector<Sighting> AskedEngine::sights() const {
  std::vector<Sighting> all;
  for (const auto& [launch, machine] : machines_) all.push_back(sight_of(launch, machine));
  return all;
}

void AskedEngine::gone(int launch, Ending ending) {
  machines_.erase(launch);
  ends_.erase(launch);
  tells_.erase(launch);
  tails_.erase(launch);
  ending.log = machine_log(terms_, launch).string();
  see({.launch = launch, .stage = Sighting::Stage::gone, .ending = std::move(ending)});
}

void AskedEngine::order(std::span<const Order> orders) {
  for (const Order& order : orders) {
    if (!machines_.try_emplace(order.launch, Machine{.role = order.role}).second) continue;
    orders_.push_back(order);
    see({.launch = order.launch});
  }
  next();
}

void AskedEngine::tell(int launch) {
  if (!machines_.contains(launch)) return;
  tells_.insert(launch);
  next();
}

void AskedEngine::end(int launch) {
  const auto found = machines_.find(launch);
  if (found == machines_.end()) return;
  found->second.ended = true;
  if (std::erase_if(orders_, [&](const Order& order) { return order.launch == launch; }) > 0)
    return gone(launch, {.how = "not wanted any more"});
  ends_.insert(launch);
  next();
}

void AskedEngine::adopt(std::span<const Order> kept) {
  // The list says what has become of them.
  for (const Order& order : kept)
    machines_.try_emplace(order.launch, Machine{.role = order.role, .submitted = true, .adopted = true});
  look_due_ = true;
  next();
}

std::string AskedEngine::tail(int launch) const {
  const auto text = load_own_text(machine_log(terms_, launch));
  return !text ? "" : text->size() > kLastWords ? text->substr(text->size() - kLastWords) : *text;
}

void AskedEngine::sweep() {
  while (!orders_.empty()) end(orders_.front().launch);
  for (auto& [launch, machine] : machines_) machine.ended = true;
  finishing_ = true;  // whatever of this run is listed is not wanted
  look_due_ = true;
  next();
}

void AskedEngine::finish() {
  sweep();
  const Seconds patience = std::min(provider_->patience(), kLastPatience);
  for (int i = 0; i < kLastPrograms && program_; ++i) program_->wait(patience);
  // The loop does not run any more, so this cannot wait for it.
  if (!trouble_.empty() && calls_.said)
    calls_.said(fmt::format("{} may hold machines of this run: end them, when it answers, with: mayfly sweep {}",
                            provider_->name(), terms_.directory.string()));
}

/// Orders first: what is asked for may be the only thing that training waits for.
void AskedEngine::next() {
  if (program_) return;
  const bool some =
      std::any_of(ends_.begin(), ends_.end(), [&](int launch) { return !machines_.at(launch).id.empty(); });
  if (!orders_.empty()) return submit();
  if (some || !strays_.empty()) return cancel();
  if (!tells_.empty()) return notify();
  if (!tails_.empty()) return ask_last_words();
  if (look_due_) look();
}

void AskedEngine::run(ProgramCall question, void (AskedEngine::*then)(const ProgramEnd&)) {
  program_ = std::make_unique<Program>(loop_, std::move(question.words), question.input, provider_->patience(),
                                       [this, then](const ProgramEnd& end) {
                                         const auto ended = std::move(program_);  // until this call is over
                                         if (then != nullptr) (this->*then)(end);
                                         next();
                                       });
}

void AskedEngine::submit() {
  const std::vector<Order> orders = provider_->together(orders_);
  std::erase_if(orders_, [&](const Order& order) { return std::ranges::find(orders, order) != orders.end(); });
  auto question = provider_->order(orders);
  if (!question) {
    for (const Order& order : orders)
      gone(order.launch, {.kind = Ending::Kind::refused, .how = question.error().message});
    return next();
  }
  for (const Order& order : orders) machines_.at(order.launch).submitted = true;
  submitting_ = orders;
  run(*std::move(question), &AskedEngine::submitted);
}

void AskedEngine::submitted(const ProgramEnd& end) {
  const std::vector<Order> orders = std::exchange(submitting_, {});
  const std::vector<Granted> placed = provider_->placed(orders, end);
  look_in(kLookSoon);
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const Granted& what = placed.at(i);
    Machine& machine = machines_.at(orders[i].launch);
    machine.id = what.id;
    machine.doubt = what.doubt;  // the provider may have it all the same: the list will tell
    if (!what.refused.empty()) gone(orders[i].launch, {.kind = Ending::Kind::refused, .how = what.refused});
  }
}

void AskedEngine::cancel() {
  std::map<int, std::string> machines = std::exchange(strays_, {});
  for (const int launch : std::set<int>(ends_)) {
    const std::string& id = machines_.at(launch).id;
    if (id.empty() || machines.size() >= kMostAtOnce) continue;  // the next look says what it is called
    machines[launch] = id;
    ends_.erase(launch);
  }
  std::vector<Ordered> all;
  for (const auto& [launch, id] : machines) all.push_back({.launch = launch, .id = id});
  run(provider_->end(all), &AskedEngine::cancelled);
}

void AskedEngine::cancelled(const ProgramEnd& end) {
  if (!end.well()) {
    say(fmt::format("{} did not end machines: {}", provider_->name(), end.why()));
    trouble_ = end.why();
  }
  // What could not be ended is listed still, and is found there.
  look_in(kLookSoon);
}

void AskedEngine::notify() {
  std::vector<Ordered> all;
  for (const int launch : std::exchange(tells_, {})) {
    const Machine& machine = machines_.at(launch);
    if (machine.stage == Sighting::Stage::running) all.push_back({.launch = launch, .id = machine.id});
  }
  if (!all.empty()) return run(provider_->tell(all), &AskedEngine::told);
  next();
}

void AskedEngine::told(const ProgramEnd& end) {
  if (!end.well()) say(fmt::format("{} gave no notice: {}", provider_->name(), end.why()));
}

void AskedEngine::ask_last_words() {
  tailing_ = *tails_.begin();
  run(provider_->tail({.launch = tailing_, .id = machines_.at(tailing_).id}), &AskedEngine::tailed);
}

/// What the machine wrote into the run's folder itself is better than what its provider has.
void AskedEngine::tailed(const ProgramEnd& end) {
  const auto found = machines_.find(tailing_);
  if (found == machines_.end() || !found->second.failed) return;
  const std::string words = provider_->words_of(end);
  const auto log = machine_log(terms_, tailing_);
  if (end.well() && !trimmed(words).empty() && trimmed(tail(tailing_)).empty())
    (void)save_text(log, words.substr(words.size() - std::min(words.size(), kLastWords)));
  const std::string id = found->second.id;
  gone(tailing_, Ending(*found->second.failed));
  bury(tailing_, id);
}

void AskedEngine::look_in(Seconds time) {
  look_timer_.start(time, [this] {
    look_due_ = true;
    next();
  });
}

void AskedEngine::look() {
  look_due_ = false;
  look_timer_.cancel();
  run(provider_->list(), &AskedEngine::looked);
}

void AskedEngine::looked(const ProgramEnd& end) {
  const auto all = provider_->listed(end);
  const std::string trouble = all ? "" : all.error().message;
  if (trouble != trouble_ && !trouble.empty())
    say(fmt::format("{} does not say where machines are: {}", provider_->name(), trouble));
  trouble_ = trouble;
  if (all) compare(*all);
  if (machines_.empty()) return;
  const bool waits = std::any_of(machines_.begin(), machines_.end(), [](const auto& entry) {
    return entry.second.stage != Sighting::Stage::running || entry.second.ended;
  });
  look_in(provider_->interval() * (waits ? 1 : 2));
}

void AskedEngine::compare(const std::vector<Listed>& all) {
  std::set<int> listed;
  for (const Listed& one : all) {
    const auto found = machines_.find(one.launch);
    const bool wanted = found != machines_.end() && found->second.submitted && !finishing_;
    if (!wanted && one.phase < Listed::Phase::ending) strays_[one.launch] = one.id;
    if (found != machines_.end() && found->second.submitted) {
      listed.insert(one.launch);
      update(one.launch, found->second, one);
    }
    if (one.phase == Listed::Phase::over) bury(one.launch, one.id);
  }
  std::vector<int> missing;
  for (const auto& [launch, machine] : machines_) {
    if (machine.submitted && !listed.contains(launch)) missing.push_back(launch);
  }
  for (const int launch : missing) {
    const std::string doubt = machines_.at(launch).doubt;
    if (machines_.at(launch).failed) continue;
    gone(launch, doubt.empty() ? Ending{.how = fmt::format("{} does not list it any more", provider_->name())}
                               : Ending{.kind = Ending::Kind::refused, .how = doubt});
  }
  tell_waiting(all);
}

void AskedEngine::bury(int launch, const std::string& id) {
  // Its last words are asked for first.
  if (provider_->buries() && !tails_.contains(launch)) strays_[launch] = id;
}

/// May erase the machine.
void AskedEngine::update(int launch, Machine& machine, const Listed& listed) {
  using Phase = Listed::Phase;
  machine.id = listed.id;
  machine.doubt.clear();
  if (machine.failed) return;
  // Without a controller a worker ends by itself, which is no failure of its own.
  if (listed.phase == Phase::over && machine.adopted) return gone(launch, {.how = "ended while nobody looked"});
  if (listed.phase == Phase::over) {
    const bool ran = machine.stage != Sighting::Stage::ordered || listed.age > Seconds(0);
    Ending ending = listed.ending;
    if (!ran && ending.kind == Ending::Kind::preempted) ending.kind = Ending::Kind::refused;
    const bool speaks = !provider_->tail({.launch = launch, .id = listed.id}).words.empty();
    if (ending.kind != Ending::Kind::failed || !speaks) return gone(launch, std::move(ending));
    machine.failed = std::move(ending);
    tails_.insert(launch);
    return;
  }
  if (listed.phase == Phase::ending) {
    // One that ends by itself is asked how it ended; one that was told to is as good as gone.
    if (machine.ended) gone(launch, {.how = "ended"});
    return;
  }
  machine.adopted = false;
  if (machine.ended) ends_.insert(launch);
  const Machine before = machine;
  machine.stage = listed.phase == Phase::waiting    ? Sighting::Stage::ordered
                  : listed.phase == Phase::starting ? Sighting::Stage::starting
                                                    : Sighting::Stage::running;
  machine.where = printable(listed.where);
  if (before.stage == Sighting::Stage::ordered) machine.since = terms_.now() - listed.age;
  if (machine.stage != before.stage || machine.where != before.where) see(sight_of(launch, machine));
}

/// Once for each reason: it may be long until the next machine comes.
void AskedEngine::tell_waiting(const std::vector<Listed>& all) {
  std::string words;
  int count = 0;
  for (const Listed& one : all) {
    const auto found = machines_.find(one.launch);
    if (found == machines_.end() || found->second.stage != Sighting::Stage::ordered || found->second.ended) continue;
    if (one.phase != Listed::Phase::waiting || one.waits.empty()) continue;
    ++count;
    words = printable(one.waits);
  }
  if (words != waiting_ && count > 0)
    say(fmt::format("{} wait{} {}", how_many(count, "machine"), count == 1 ? "s" : "", words));
  waiting_ = words;
}

}  // namespace mayfly
