#include "train/line.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/overloaded.h"
#include "train/log.h"
#include "train/stack_log.h"

namespace mayfly {
namespace {

constexpr Seconds kRetry{0.2};
constexpr Seconds kConnect{1};
constexpr Seconds kFarewell{0.2};
constexpr const char* kNoAnswer = "connected, but no answer";
/// A rehearsal has no hour to wait.
constexpr Seconds kDrillInterval{0.5};
/// A worker that goes by itself is missed at once; one that vanishes, only after a silence.
constexpr Seconds kLastCall{1};
constexpr Seconds kLeastTime{1};  ///< however little is left, some of it is used

template <class... Kinds>
bool is_one_of(const FromMember& message) {
  return (std::holds_alternative<Kinds>(message) || ...);
}

}  // namespace

Line::Line(Options options) : options_(std::move(options)), trains_(::pthread_self()), why_lost_(kNoAnswer) {
  prepare_stack_log();
  signals_.emplace(loop_, std::initializer_list<int>{SIGTERM}, [this](int) { terminate(); });
  loop_.post([this] {
    attempt();
    watch(options_.metadata, {});
  });
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

void Line::say(FromMember message) {
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

void Line::send(const ToController& message) {
  if (link_) link_->send<ToController>(message);
}

void Line::attempt() {
  if (closing_) return;
  auto connected = connect(loop_, options_.host, options_.port, options_.credentials, kConnect);
  if (!connected) return lost(connected.error().message);
  link_ = std::move(*connected);
  link_->start<ToMember>({.message = [this](ToMember message) { hear(std::move(message)); },
                          .closed = [this](const std::string& why) { lost(why); }});
  Hello hello{.pid = ::getpid(), .role = options_.role, .launch = options_.launch, .machine = options_.machine};
  if (terms_) {
    hello.worker = terms_->worker;
    if (const auto sample = sample_.load(); sample >= 0) hello.sample = sample;
    const auto* done = unanswered_ ? std::get_if<StepDone>(&*unanswered_) : nullptr;
    if (done != nullptr && done->samples > 0) {
      hello.pending = done->first_sample + done->samples;
      hello.formation = done->formation;
    }
  }
  send(hello);
  tick();
}

void Line::lost(const std::string& why) {
  link_.reset();
  heartbeat_.cancel();
  const bool news = std::exchange(attached_, false);
  if (closing_) return loop_.stop();
  if (news) log("line to the controller lost ({}); mending it", why);
  why_lost_ = why;
  if (too_silent()) return give_up(why_lost_);
  retry_.start(kRetry, [this] { attempt(); });
}

void Line::hear(ToMember message) {
  last_word_ = Clock::now();
  why_lost_ = kNoAnswer;
  const auto answers = [&] {
    unanswered_.reset();
    return false;
  };
  const auto begins = [&](std::int64_t formation) {
    options_.ended(formation - 1);
    return answers();
  };
  // True: it was for the line itself.
  const bool own = std::visit(Overloaded{
                                  [&](Welcome& word) {
                                    welcome(std::move(word));
                                    return true;
                                  },
                                  [&](const Refused& word) {
                                    refuse(word.why);
                                    return true;
                                  },
                                  [&](const Alive&) {
                                    confirm();
                                    return true;
                                  },
                                  [&](const Watch& service) {
                                    watch_too(service);
                                    return true;
                                  },
                                  [&](const Explain&) {
                                    log_stack(trains_);
                                    return true;
                                  },
                                  [&](const Form& form) { return begins(form.formation); },
                                  [&](const Serve& serve) { return begins(serve.formation); },
                                  [&](const Attach& attach) { return begins(attach.formation); },
                                  [&](const Peers&) { return answers(); },
                                  [&](const Proceed&) { return answers(); },
                                  [&](const Lease&) { return answers(); },
                                  [&](const Commit&) { return answers(); },
                                  [&](const Halt& halt) {
                                    options_.ended(halt.formation);
                                    return answers();
                                  },
                                  [&](const Leave&) {
                                    options_.ended(std::numeric_limits<std::int64_t>::max());
                                    return false;
                                  },
                                  Ignoring<bool, Forget, Save, WriteCheckpoint, Neighbours, Measure>{},
                              },
                              message);
  if (!own) deliver(std::move(message));
}

void Line::confirm() {
  if (checkpoint_ && unheard_ > 0) checkpoint_.reset();
}

void Line::watch_too(const Watch& service) {
  const auto cloud = parse_cloud(service.cloud);
  if (!cloud || !on_loopback(service.endpoint)) return log("told to watch {}: not done", service.endpoint);
  watch({.cloud = *cloud, .endpoint = service.endpoint}, kDrillInterval);
}

void Line::welcome(Welcome message) {
  const bool again = terms_ && terms_->worker == message.worker;
  if (terms_ && !again) deliver(Dropped{});
  attached_ = true;
  terms_ = message;
  tick();
  if (leaves_) send(Leaving{.left_s = std::max(0.0, Seconds(*leaves_ - Clock::now()).count()), .why = why_leaves_});
  if (risk_) send(*risk_);
  if (!again) {
    unanswered_.reset();
    checkpoint_.reset();
    return deliver(ToMember(std::move(message)));
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
  if (too_silent()) return give_up(why_lost_);
  if (attached_) {
    const char* const doing = doing_;
    send(Alive{.doing = doing != nullptr ? std::optional<std::string>(doing) : std::nullopt});
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

/// Whoever tells a whole group of processes may tell this one twice, and a machine that is shut down after its cloud's
/// notice sends one too: none of them takes away from the time that the first left. Who wants that sends SIGKILL.
void Line::terminate() {
  if (std::exchange(terminated_, true)) return;
  notice({.source = "sigterm", .reason = "told to end", .left = options_.notice});
}

void Line::watch(const MetadataService& service, std::optional<Seconds> interval) {
  if (service.cloud == Cloud::none) return;
  log("watching {} for notices of {}", service.endpoint, name(service.cloud));
  watches_.push_back(std::make_unique<NoticeWatch>(
      NoticeWatch::Options{.service = service, .interval = interval},
      NoticeWatch::Calls{
          .notice = [this](const PreemptionNotice& news) { loop_.post([this, news] { notice(news); }); },
          .trouble = [](const std::string& why) { log("no word about notices: {}; asked again", why); }}));
}

void Line::notice(const PreemptionNotice& notice) {
  const std::string why = fmt::format("{}: {}", notice.source, notice.reason);
  if (!notice.left) {
    log("{}: at risk, going on", why);
    risk_ = AtRisk{.why = why};
    if (attached_) send(*risk_);
    return;
  }
  log("{}: leaving in {:.0f} s at the latest", why, notice.left->count());
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(*notice.left);
  if (leaves_ && *leaves_ <= end) return;
  const bool news = !leaves_;
  leaves_ = end;
  if (news) why_leaves_ = why;
  leave_in(*notice.left);
  if (news && attached_) send(Leaving{.left_s = notice.left->count(), .why = why_leaves_});
}

void Line::leave_in(Seconds left) {
  const Seconds margin = std::min(kLastCall, left / 10);
  last_call_.start(std::max(kLeastTime, left - margin), [this] {
    options_.ended(std::numeric_limits<std::int64_t>::max());
    deliver(ToMember(Leave{.why = "its time is up"}));
  });
}

}  // namespace mayfly
