#include "train/line.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <utility>

#include "train/log.h"

namespace mayfly {
namespace {

constexpr Seconds kRetry{0.2};
constexpr Seconds kConnect{1};
constexpr Seconds kFarewell{0.2};

template <class... Kinds>
bool is_one_of(const Message& message) {
  return (std::holds_alternative<Kinds>(message) || ...);
}

}  // namespace

Line::Line(Options options) : options_(std::move(options)) {
  signals_.emplace(loop_, std::initializer_list<int>{SIGTERM}, [this](int) { notice(); });
  loop_.post([this] { attempt(); });
  thread_ = std::thread([this] { loop_.run(); });
}

Line::~Line() {
  loop_.post([this] {
    closing_ = true;
    if (!link_) return loop_.stop();
    link_->close();
    farewell_.start(kFarewell, [this] { loop_.stop(); });
  });
  thread_.join();
}

Mail Line::next() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return !mail_.empty(); });
  Mail mail = std::move(mail_.front());
  mail_.pop_front();
  return mail;
}

void Line::deliver(Mail mail) {
  const std::lock_guard lock(mutex_);
  mail_.push_back(std::move(mail));
  arrived_.notify_one();
}

void Line::holds(std::optional<std::int64_t> sample) { sample_ = sample.value_or(-1); }

void Line::say(Message message) {
  loop_.post([this, message = std::move(message)] {
    if (is_one_of<Ready, Reachable, Formed, StepDone, Pushed, Broken>(message)) unanswered_ = message;
    if (is_one_of<CheckpointWritten>(message)) {
      checkpoint_ = message;
      unheard_ = 0;
    }
    // What was said before the line broke is said again when it is mended; the rest is of no use by then.
    if (attached_ || is_one_of<Unable>(message)) send(message);
  });
}

void Line::send(const Message& message) {
  if (link_) link_->send(message);
}

void Line::attempt() {
  if (closing_) return;
  auto connected = connect(loop_, options_.host, options_.port, options_.credentials, kConnect);
  if (!connected) return lost(connected.error().message);
  link_ = std::move(*connected);
  link_->start({.message = [this](Message message) { hear(std::move(message)); },
                .closed = [this](const std::string& why) { lost(why); }});
  Hello hello{.pid = ::getpid(), .role = options_.role, .slot = options_.slot};
  if (terms_) {
    hello.worker = terms_->worker;
    if (const auto sample = sample_.load(); sample >= 0) hello.sample = sample;
    const auto* done = unanswered_ ? std::get_if<StepDone>(&*unanswered_) : nullptr;
    if (done != nullptr && done->samples > 0) hello.pending = done->first_sample + done->samples;
  }
  link_->send(hello);
  tick();
}

void Line::lost(const std::string& why) {
  link_.reset();
  heartbeat_.cancel();
  const bool news = std::exchange(attached_, false);
  if (closing_) return loop_.stop();
  if (news) log("line to the controller lost ({}); mending it", why);
  if (too_silent()) return give_up(why);
  retry_.start(kRetry, [this] { attempt(); });
}

void Line::hear(Message message) {
  last_word_ = Clock::now();
  if (auto* welcomed = std::get_if<Welcome>(&message)) return welcome(std::move(*welcomed));
  if (const auto* refused = std::get_if<Refused>(&message)) return refuse(refused->why);
  if (is_one_of<Alive>(message)) {
    if (checkpoint_ && unheard_ > 0) checkpoint_.reset();
    return;
  }
  if (is_one_of<Form, Peers, Proceed, Serve, Attach, Lease, Commit, Halt>(message)) unanswered_.reset();
  end_formations(message);
  deliver(std::move(message));
}

void Line::welcome(Welcome message) {
  const bool again = terms_ && terms_->worker == message.worker;
  if (terms_ && !again) deliver(Dropped{});
  attached_ = true;
  terms_ = message;
  tick();
  if (leaves_) send(Leaving{std::max(0.0, Seconds(*leaves_ - Clock::now()).count())});
  if (!again) {
    unanswered_.reset();
    checkpoint_.reset();
    return deliver(Message(std::move(message)));
  }
  log("attached again as {} {}", options_.role, message.worker);
  unheard_ = 0;
  if (checkpoint_) send(*checkpoint_);
  if (unanswered_) send(*unanswered_);
}

void Line::refuse(const std::string& why) {
  link_.reset();
  attached_ = false;
  heartbeat_.cancel();
  if (!terms_) return deliver(Rejected{fmt::format("{}:{}: refused: {}", options_.host, options_.port, why)});
  log("refused ({}); starting again as a newcomer", why);
  terms_.reset();
  unanswered_.reset();
  checkpoint_.reset();
  options_.ended(std::numeric_limits<std::int64_t>::max());
  deliver(Dropped{});
  attempt();
}

/// Beats, and watches for silence: a frozen controller's system still accepts connections.
void Line::tick() {
  if (closing_) return;
  if (too_silent()) return give_up("connected, but no answer");
  if (attached_) {
    send(Alive{});
    ++unheard_;
  }
  heartbeat_.start(attached_ ? Seconds(terms_->heartbeat_s) : kRetry, [this] { tick(); });
}

bool Line::too_silent() const {
  return Clock::now() - last_word_ > (terms_ ? Seconds(terms_->orphan_s) : options_.patience);
}

void Line::give_up(const std::string& why) {
  if (!terms_) return deliver(Rejected{fmt::format("{}:{}: {}", options_.host, options_.port, why)});
  options_.ended(std::numeric_limits<std::int64_t>::max());
  deliver(Orphaned{});
}

void Line::end_formations(const Message& message) {
  if (const auto* form = std::get_if<Form>(&message)) options_.ended(form->formation - 1);
  if (const auto* serve = std::get_if<Serve>(&message)) options_.ended(serve->formation - 1);
  if (const auto* attach = std::get_if<Attach>(&message)) options_.ended(attach->formation - 1);
  if (const auto* halt = std::get_if<Halt>(&message)) options_.ended(halt->formation);
  if (is_one_of<Leave>(message)) options_.ended(std::numeric_limits<std::int64_t>::max());
}

void Line::notice() {
  if (leaves_) std::_Exit(128 + SIGTERM);
  log("SIGTERM: leaving in {:.0f} s at the latest", options_.notice.count());
  leaves_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.notice);
  if (attached_) send(Leaving{options_.notice.count()});
}

}  // namespace mayfly
