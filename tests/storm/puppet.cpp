#include "storm/puppet.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"

namespace mayfly::storm {
namespace {

constexpr Seconds kRetry{0.2};

template <class... Kinds>
bool is_one_of(const FromMember& message) {
  return (std::holds_alternative<Kinds>(message) || ...);
}

}  // namespace

std::string Puppet::name() const {
  return fmt::format("{}{} of launch {}", server_ ? "s" : "w", id_.value_or(0), launch_);
}

void Puppet::later(Seconds time, std::function<void()> what) {
  world_.agenda().after(time, [this, what = std::move(what)] {
    if (!alive_) return;
    if (const Seconds rest = frozen_until_ - world_.agenda().now(); rest.count() > 0) return later(rest, what);
    what();
  });
}

bool Puppet::holds(std::int64_t sample) const {
  if (!alive_ || !attached_ || !weights_ || frozen_until_ > world_.agenda().now()) return false;
  // Whoever was only handed the state may have had no chance to say so.
  if (weights_->sample == sample) return applied_in_ == world_.account().ended_in() && (!server_ || serving_);
  return pending_ && pending_->first == weights_->sample && pending_->end() == sample &&
         pending_->done.formation == world_.account().ended_in();
}

void Puppet::boot() {
  if (world_.rng().chance(world_.weather().mute)) return;
  later(Seconds(world_.rng().exponential(0.3)), [this] {
    weights_ = server_ ? std::nullopt : std::optional(Weights{});
    attempt();
  });
}

void Puppet::exit(const char* how) {
  if (!alive_) return;
  leave_formation();
  alive_ = false;
  world_.exited(*this, how);
}

void Puppet::die() { exit("killed"); }

void Puppet::leave() {
  // All that was leased has been committed or forgotten. A standby may have missed the last word of a controller that
  // died, and is not needed any more.
  const bool last = serving_ && serve_->formation == world_.account().formation() && weights_ &&
                    weights_->sample == world_.account().end();
  world_.account().require(!last || !world_.trained() || staged_.empty(), "{} keeps {} pushes that nobody will ask for",
                           name(), staged_.size());
  exit("left");
}

void Puppet::notice(Seconds left) {
  if (!alive_) return;
  if (!leaves_) leaves_ = world_.agenda().now() + left;
  if (attached_) say(Leaving{.left_s = left.count()}, false);
}

void Puppet::freeze(Seconds length) { frozen_until_ = std::max(frozen_until_, world_.agenda().now() + length); }

// The line.

void Puppet::attempt() {
  if (connection_) return;
  connection_ = world_.connect(*this);
  if (!connection_) return lost_line();
  Hello hello{.pid = launch_ + 1,
              .role = server_ ? "server" : "worker",
              .launch = launch_,
              .machine = machine_name("", launch_)};
  if (id_) {
    hello.worker = *id_;
    if (weights_) hello.sample = weights_->sample;
    const auto* done = unanswered_ ? std::get_if<StepDone>(&*unanswered_) : nullptr;
    if (done != nullptr && done->samples > 0) {
      hello.pending = done->first_sample + done->samples;
      hello.formation = done->formation;
    }
  }
  world_.say(*connection_, hello);
}

void Puppet::lost_line() {
  connection_.reset();
  attached_ = false;
  if (!alone_since_) alone_since_ = world_.agenda().now();
  if (world_.agenda().now() - *alone_since_ > world_.inputs().times.orphan)
    return later(Seconds(0), [this] { orphaned(); });
  later(kRetry, [this] { attempt(); });
}

/// Nobody is there to ask: what it holds is saved, and it ends.
void Puppet::orphaned() {
  const Saved* newest = world_.newest();
  if (!server_ && weights_ && weights_->sample > 0 && form_ &&
      (newest == nullptr || newest->weights.sample < weights_->sample))
    world_.save(fmt::format("checkpoint-{}", weights_->sample), *weights_, weights_->ranges());
  exit("orphaned");
}

void Puppet::say(FromMember message, bool answer) {
  if (answer && is_one_of<Ready, Reachable, Formed, StepDone, Pushed, Broken>(message)) unanswered_ = message;
  if (is_one_of<CheckpointWritten>(message)) checkpoint_ = message;
  if (attached_ && connection_) world_.say(*connection_, message);
}

void Puppet::heartbeat() {
  later(world_.inputs().times.heartbeat, [this] {
    if (attached_ && connection_)
      world_.say(*connection_, Alive{doing_ != nullptr ? std::optional<std::string>(doing_) : std::nullopt});
    heartbeat();
  });
}

void Puppet::hear(ToMember message) {
  // In their order, however often it is frozen in between.
  inbox_.push_back(std::move(message));
  later(Seconds(0), [this] {
    const ToMember next = std::move(inbox_.front());
    inbox_.pop_front();
    obey(next);
  });
}

void Puppet::welcome(const Welcome& welcome) {
  const bool again = id_ == welcome.worker;
  attached_ = true;
  alone_since_.reset();
  if (!std::exchange(beating_, true)) heartbeat();
  id_ = welcome.worker;
  if (leaves_) say(Leaving{.left_s = std::max(0.0, (*leaves_ - world_.agenda().now()).count())}, false);
  if (again) {
    if (checkpoint_) say(*checkpoint_);
    if (unanswered_) say(*unanswered_);
    return;
  }
  unanswered_.reset();
  checkpoint_.reset();
  const Seconds load = loaded_ ? Seconds(0) : Seconds(world_.rng().exponential(0.5));
  later(load, [this, worker = welcome.worker] {
    if (id_ != worker) return;
    loaded_ = true;
    say(Ready{.samples = world_.epoch(), .parameters = 1, .state_mb = 0.1, .address = server_ ? address_ : ""});
  });
}

void Puppet::refused() {
  connection_.reset();
  attached_ = false;
  if (!id_) return exit("refused");
  // Whatever it holds counts for nothing.
  id_.reset();
  unanswered_.reset();
  checkpoint_.reset();
  leave_formation();
  form_.reset();
  pending_.reset();
  attached_to_.reset();
  done_.reset();
  serve_.reset();
  serving_ = false;
  staged_.clear();
  copy_.reset();
  weights_ = server_ ? std::nullopt : std::optional(Weights{});
  attempt();
}

void Puppet::obey(const ToMember& message) {
  // What answers its last word, and needs a job that is loaded.
  const auto answers = [&](auto&& act) {
    unanswered_.reset();
    if (loaded_) act();
  };
  const auto current = [&](std::int64_t formation) { return form_ && form_->formation == formation; };
  const auto serves = [&](std::int64_t formation) { return loaded_ && serving_ && serve_->formation == formation; };
  std::visit(Overloaded{
                 [&](const Welcome& word) { welcome(word); },
                 [&](const Refused&) { refused(); },
                 [&](const Leave&) { leave(); },
                 [&](const Form& word) { answers([&] { form(word); }); },
                 [&](const Peers& word) {
                   answers([&] {
                     if (current(word.formation)) meet(word);
                   });
                 },
                 [&](const Proceed& word) {
                   answers([&] {
                     if (current(word.formation)) proceed(word);
                   });
                 },
                 [&](const WriteCheckpoint& word) {
                   if (loaded_ && current(word.formation)) write_checkpoint();
                 },
                 [&](const Attach& word) { answers([&] { attach(word); }); },
                 [&](const Lease& word) {
                   answers([&] {
                     if (attached_to_ && attached_to_->formation == word.formation) take(word);
                   });
                 },
                 [&](const Serve& word) { answers([&] { serve(word); }); },
                 [&](const Commit& word) {
                   answers([&] {
                     if (serves(word.formation)) commit(word);
                   });
                 },
                 [&](const Forget& word) {
                   if (serves(word.formation)) forget(word);
                 },
                 [&](const Save& word) {
                   if (serves(word.formation)) save(word);
                 },
                 [&](const Halt& word) { answers([&] { halt(word); }); },
                 Ignoring<void, Alive, Neighbours, Measure, Watch, Explain>{},
             },
             message);
}

bool Puppet::hangs() {
  const bool now = world_.rng().chance(world_.weather().hang);
  hung_ = hung_ || now;
  return now;
}

void Puppet::halt(const Halt& halt) {
  if (form_ && form_->formation <= halt.formation) leave_formation();
  if (attached_to_ && attached_to_->formation <= halt.formation) attached_to_.reset();
}

}  // namespace mayfly::storm
