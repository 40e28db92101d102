#include "engine/slurm_engine.h"

#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

/// Slurm's programs answer in milliseconds, and wait for a controller that is being started again.
constexpr Seconds kSlurmPatience{20};
/// Between two looks at the queue while machines are waited for, and otherwise.
constexpr Seconds kLookWaiting{5};
constexpr Seconds kLookRunning{10};
constexpr Seconds kLookSoon{1};
/// Until a machine says its first word once it runs: a prologue, a file system that is asked for the first time.
constexpr Seconds kSlurmStart{60};
constexpr Seconds kSlurmScriptStart{300};
constexpr std::size_t kSlurmTail = 2000;
/// A command line holds as many names easily.
constexpr std::size_t kMostAtOnce = 500;
/// Programs that finish() waits for; each has its own patience.
constexpr int kLastPrograms = 6;

}  // namespace

SlurmEngine::SlurmEngine(Loop& loop, SlurmRun run, Calls calls)
    : loop_(loop), run_(std::move(run)), calls_(std::move(calls)), look_timer_(loop) {}

EngineChoice SlurmEngine::choice(SlurmRun run) {
  EngineChoice chosen;
  chosen.expected = [run](const MachineRole& role) {
    const auto notice = run.notice.find(role.market);
    return Expectation{.start = run.script && !role.server ? kSlurmScriptStart : kSlurmStart,
                       .notice = notice == run.notice.end() ? Seconds(0) : notice->second};
  };
  chosen.start = [run = std::move(run)](Loop& loop, const RunTerms& terms, Calls calls) {
    SlurmRun own = run;
    own.terms = terms;
    return std::make_unique<SlurmEngine>(loop, std::move(own), std::move(calls));
  };
  return chosen;
}

Expectation SlurmEngine::expected(const MachineRole& role) const { return choice(run_).expected(role); }

void SlurmEngine::see(Sighting sight) {
  // Never from within a call: the caller that ordered is in the middle of something.
  loop_.post([this, here = std::weak_ptr(here_), sight = std::move(sight)] {
    if (!here.expired() && calls_.seen) calls_.seen(sight);
  });
}

void SlurmEngine::say(const std::string& text) {
  loop_.post([this, here = std::weak_ptr(here_), text] {
    if (!here.expired() && calls_.said) calls_.said(text);
  });
}

Sighting SlurmEngine::sight_of(int launch, const Machine& machine) const {
  Sighting sight{.launch = launch, .stage = machine.stage, .where = machine.where};
  if (machine.stage != Sighting::Stage::ordered) sight.age = std::max(Seconds(0), run_.terms.now() - machine.since);
  return sight;
}

std::vector<Sighting> SlurmEngine::sights() const {
  std::vector<Sighting> all;
  for (const auto& [launch, machine] : machines_) all.push_back(sight_of(launch, machine));
  return all;
}

void SlurmEngine::gone(int launch, Ending ending) {
  machines_.erase(launch);
  ends_.erase(launch);
  tells_.erase(launch);
  ending.log = (run_.terms.directory / "logs" / fmt::format("worker-{}.log", launch)).string();
  see({.launch = launch, .stage = Sighting::Stage::gone, .ending = std::move(ending)});
}

void SlurmEngine::order(std::span<const Order> orders) {
  for (const Order& order : orders) {
    if (!machines_.try_emplace(order.launch, Machine{.role = order.role}).second) continue;
    orders_.push_back(order.launch);
    see({.launch = order.launch});
  }
  next();
}

void SlurmEngine::tell(int launch) {
  if (!machines_.contains(launch)) return;
  tells_.insert(launch);
  next();
}

void SlurmEngine::end(int launch) {
  const auto found = machines_.find(launch);
  if (found == machines_.end()) return;
  found->second.ended = true;
  if (std::erase(orders_, launch) > 0) return gone(launch, {.how = "not wanted any more"});
  ends_.insert(launch);
  next();
}

void SlurmEngine::adopt(std::span<const Order> kept) {
  // The queue says what has become of them.
  for (const Order& order : kept)
    machines_.try_emplace(order.launch, Machine{.role = order.role, .submitted = true, .adopted = true});
  look_due_ = true;
  next();
}

std::string SlurmEngine::tail(int launch) const {
  const auto text = load_own_text(run_.terms.directory / "logs" / fmt::format("worker-{}.log", launch));
  return !text ? "" : text->size() > kSlurmTail ? text->substr(text->size() - kSlurmTail) : *text;
}

void SlurmEngine::sweep() {
  while (!orders_.empty()) end(orders_.front());
  for (auto& [launch, machine] : machines_) machine.ended = true;
  finishing_ = true;  // whatever of this run is in the queue is not wanted
  look_due_ = true;
  next();
}

void SlurmEngine::finish() {
  sweep();
  for (int i = 0; i < kLastPrograms && program_; ++i) program_->wait(kSlurmPatience);
  // The loop does not run any more, so this cannot wait for it.
  if (!trouble_.empty() && calls_.said)
    calls_.said(fmt::format("Slurm may hold machines of this run: end them, when it answers, with: mayfly sweep {}",
                            run_.terms.directory.string()));
}

/// Orders first: what is asked for may be the only thing that training waits for.
void SlurmEngine::next() {
  if (program_) return;
  const bool some =
      std::any_of(ends_.begin(), ends_.end(), [&](int launch) { return !machines_.at(launch).id.empty(); });
  if (!orders_.empty()) return submit();
  if (some || !strays_.empty()) return cancel();
  if (!tells_.empty()) return notify();
  if (look_due_) look();
}

void SlurmEngine::run(std::vector<std::string> words, const std::string& input,
                      void (SlurmEngine::*then)(const ProgramEnd&)) {
  program_ =
      std::make_unique<Program>(loop_, std::move(words), input, kSlurmPatience, [this, then](const ProgramEnd& end) {
        const auto ended = std::move(program_);  // until this call is over
        if (then != nullptr) (this->*then)(end);
        next();
      });
}

/// Those of the orders that are alike, as one array.
void SlurmEngine::submit() {
  SlurmArray array{.role = machines_.at(orders_.front()).role};
  for (const int launch : orders_) {
    const bool fits = array.launches.empty() || launch - array.launches.front() < run_.array_size;
    if (fits && machines_.at(launch).role == array.role) array.launches.push_back(launch);
  }
  std::erase_if(orders_, [&](int launch) { return std::ranges::find(array.launches, launch) != array.launches.end(); });
  auto words = sbatch_words(run_, array);
  if (!words) {
    for (const int launch : array.launches) gone(launch, {.kind = Ending::Kind::refused, .how = words.error().message});
    return next();
  }
  for (const int launch : array.launches) machines_.at(launch).submitted = true;
  submitting_ = array.launches;
  run(*std::move(words), batch_script(run_, array), &SlurmEngine::submitted);
}

void SlurmEngine::submitted(const ProgramEnd& end) {
  const std::vector<int> launches = std::exchange(submitting_, {});
  const auto array = end.well() ? submitted_array(end.output) : Result<int>(unexpected(Error{end.why()}));
  look_in(kLookSoon);
  for (const int launch : launches) {
    Machine& machine = machines_.at(launch);
    if (array) {
      machine.id = fmt::format("{}_{}", *array, launch - launches.front());
    } else if (end.late) {
      // Slurm may have taken it all the same: the queue will tell.
      machine.doubt = "sbatch: " + array.error().message;
    } else {
      gone(launch, {.kind = Ending::Kind::refused, .how = array.error().message});
    }
  }
}

void SlurmEngine::cancel() {
  std::set<std::string> ids = std::exchange(strays_, {});
  for (const int launch : std::set<int>(ends_)) {
    const std::string& id = machines_.at(launch).id;
    if (id.empty() || ids.size() >= kMostAtOnce) continue;  // the next look at the queue says what it is
    ids.insert(id);
    ends_.erase(launch);
  }
  std::vector<std::string> words{"scancel"};
  words.insert(words.end(), ids.begin(), ids.end());
  run(std::move(words), "", &SlurmEngine::cancelled);
}

void SlurmEngine::cancelled(const ProgramEnd&) {
  // What could not be ended is in the queue still, and is found there.
  look_in(kLookSoon);
}

void SlurmEngine::notify() {
  std::vector<std::string> words{"scancel", "--signal=TERM"};
  for (const int launch : std::exchange(tells_, {})) {
    const Machine& machine = machines_.at(launch);
    if (machine.stage == Sighting::Stage::running) words.push_back(machine.id);
  }
  if (words.size() > 2) return run(std::move(words), "", nullptr);
  next();
}

void SlurmEngine::look_in(Seconds time) {
  look_timer_.start(time, [this] {
    look_due_ = true;
    next();
  });
}

void SlurmEngine::look() {
  look_due_ = false;
  look_timer_.cancel();
  run({"squeue", "--noheader", "--array", "--states=all", fmt::format("--user={}", ::getuid()),
       fmt::format("--format={}", kSlurmFormat)},
      "", &SlurmEngine::looked);
}

void SlurmEngine::looked(const ProgramEnd& end) {
  const auto elements = end.well() ? slurm_elements(end.output, run_.terms.run)
                                   : Result<std::vector<SlurmElement>>(unexpected(Error{end.why()}));
  const std::string trouble = elements ? "" : elements.error().message;
  if (trouble != trouble_ && !trouble.empty()) say(fmt::format("Slurm does not say where machines are: {}", trouble));
  trouble_ = trouble;
  if (elements) compare(*elements);
  if (machines_.empty()) return;
  const bool waits = std::any_of(machines_.begin(), machines_.end(), [](const auto& entry) {
    return entry.second.stage != Sighting::Stage::running || entry.second.ended;
  });
  look_in(waits ? kLookWaiting : kLookRunning);
}

void SlurmEngine::compare(const std::vector<SlurmElement>& elements) {
  std::set<int> listed;
  for (const SlurmElement& element : elements) {
    const auto found = machines_.find(element.launch);
    const SlurmPhase phase = slurm_phase(element.state);
    const bool wanted = found != machines_.end() && found->second.submitted && !finishing_;
    if (!wanted && phase < SlurmPhase::ending) strays_.insert(element.id);
    if (found == machines_.end() || !found->second.submitted) continue;
    listed.insert(element.launch);
    update(element.launch, found->second, element);
  }
  std::vector<int> missing;
  for (const auto& [launch, machine] : machines_) {
    if (machine.submitted && !listed.contains(launch)) missing.push_back(launch);
  }
  for (const int launch : missing) {
    const std::string doubt = machines_.at(launch).doubt;
    gone(launch, doubt.empty() ? Ending{.how = "not in Slurm's queue any more"}
                               : Ending{.kind = Ending::Kind::refused, .how = doubt});
  }
  tell_waiting(elements);
}

/// May erase the machine.
void SlurmEngine::update(int launch, Machine& machine, const SlurmElement& element) {
  machine.id = element.id;
  machine.doubt.clear();
  const SlurmPhase phase = slurm_phase(element.state);
  const bool ran = machine.stage != Sighting::Stage::ordered || element.elapsed > Seconds(0);
  // Without a controller a worker ends by itself, which is no failure of its own.
  if (phase == SlurmPhase::over && machine.adopted) return gone(launch, {.how = "ended while nobody looked"});
  if (phase == SlurmPhase::over) return gone(launch, slurm_ending(element, ran));
  if (phase == SlurmPhase::ending) {
    // One that ends by itself is asked how it ended; one that was told to is as good as gone.
    if (machine.ended) gone(launch, {.how = "ended"});
    return;
  }
  machine.adopted = false;
  if (machine.ended) ends_.insert(launch);
  const Machine before = machine;
  machine.stage = phase == SlurmPhase::waiting    ? Sighting::Stage::ordered
                  : phase == SlurmPhase::starting ? Sighting::Stage::starting
                                                  : Sighting::Stage::running;
  machine.where = phase == SlurmPhase::waiting
                      ? fmt::format("job {} waits in {}: {}", element.id, element.partition, element.reason)
                      : fmt::format("{}, job {}", element.node, element.id);
  machine.where = printable(machine.where);
  if (before.stage == Sighting::Stage::ordered) machine.since = run_.terms.now() - element.elapsed;
  if (machine.stage != before.stage || machine.where != before.where) see(sight_of(launch, machine));
}

/// Once for each reason: it may be long until the next machine comes.
void SlurmEngine::tell_waiting(const std::vector<SlurmElement>& elements) {
  std::string words;
  int count = 0;
  for (const SlurmElement& element : elements) {
    const auto found = machines_.find(element.launch);
    if (found == machines_.end() || found->second.stage != Sighting::Stage::ordered || found->second.ended) continue;
    if (slurm_phase(element.state) != SlurmPhase::waiting || element.reason == "None") continue;
    ++count;
    words = fmt::format("in partition {}: {}", element.partition, printable(element.reason));
  }
  if (words != waiting_ && count > 0)
    say(fmt::format("{} machine{} wait{} {}", count, count == 1 ? "" : "s", count == 1 ? "s" : "", words));
  waiting_ = words;
}

}  // namespace mayfly
