#include "profile/workshop.h"

#include <signal.h>

#include <algorithm>

#include "base/overloaded.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr Seconds kFarewell{3};
/// A worker that computes still says that it is alive.
constexpr Seconds kSilence{20};

}  // namespace

std::string_view name(SampleSource source) {
  switch (source) {
    case SampleSource::synthetic:
      return "synthetic";
    case SampleSource::real:
      return "real";
    case SampleSource::cold:
      return "cold";
    case SampleSource::warm:
      return "warm";
  }
  return "";
}

Workshop::Workshop(Options options) : options_(std::move(options)) {}

Result<std::unique_ptr<Workshop>> Workshop::open(Options options) {
  if (!options.spec.train) return fail("{}: no 'train' block: nothing to measure", options.job_file.string());
  if (options.spec.train->model.is_script())
    return fail("{}: the model is a script, which cannot be asked for single steps: learn from its log with --from",
                options.job_file.string());
  std::unique_ptr<Workshop> shop(new Workshop(std::move(options)));
  if (auto started = shop->start(); !started) return unexpected(started.error());
  return shop;
}

Workshop::~Workshop() {
  if (!engine_) return;
  if (interrupted_ || failure_) engine_->sweep();
  for (const auto& [id, person] : people_) desk_->send(id, Leave{"everything is measured"});
  leaving_ = true;
  Timer patience(loop_);
  patience.start(kFarewell, [this, &patience] {
    engine_->sweep();
    patience.start(Seconds(1), [this] { loop_.stop(); });
  });
  if (engine_->running() > 0) loop_.run();
}

Result<void> Workshop::start() {
  std::error_code error;
  std::filesystem::create_directories(options_.directory / "logs", error);
  std::filesystem::create_directories(options_.directory / "checkpoints", error);
  if (error) return fail("{}: cannot create: {}", options_.directory.string(), error.message());
  auto store = Store::open(options_.directory / "state.db");
  if (!store) return unexpected(store.error());
  store_ = *std::move(store);
  const auto token = fresh_token(false);
  if (!token) return unexpected(token.error());
  const auto credentials = Credentials::from(*token);
  if (!credentials) return unexpected(credentials.error());
  auto desk =
      Desk::open(loop_, "127.0.0.1", 0, *credentials,
                 {.hello = [this](const Hello& word) { return hello(word); },
                  .connected = [](WorkerId, const Hello&) {},
                  .message = [this](WorkerId from, const FromMember& message) { hear(from, message); },
                  .closed =
                      [this](WorkerId who) {
                        if (!leaving_) lost(fmt::format("worker {} has gone", who));
                      },
                  .order = [](const FromOperator&) -> ToOperator { return Refused{"nobody gives orders here"}; },
                  .carry = [](const FromCarrier&, const auto& answer) { answer(Undone{"files are shared here"}); },
                  .failed = [this](const std::string& why) { lost(why); }});
  if (!desk) return unexpected(desk.error());
  desk_ = *std::move(desk);
  const std::string address = fmt::format("127.0.0.1:{}", desk_->port());
  engine_ = std::make_unique<LocalEngine>(
      loop_,
      LocalEngine::Options{.run = fmt::format("workshop-{}", ::getpid()),
                           .program = options_.program,
                           .arguments = {"--join", address, "--interface", "lo", "--notices", "none"},
                           .join = address,
                           .logs = options_.directory / "logs",
                           .token = *token,
                           .capacity = options_.workers},
      Engine::Calls{.seen = [this](const Sighting& sight) {
        if (sight.stage != Sighting::Stage::gone) return;
        if (leaving_ && engine_->running() == 0) loop_.stop();
        if (leaving_) return;
        lost(fmt::format("a worker: {}, its last words are in {}", sight.ending->how, sight.ending->log));
      }});
  signals_ = std::make_unique<SignalWatch>(loop_, std::initializer_list<int>{SIGINT, SIGTERM}, [this](int) {
    interrupted_ = true;
    loop_.stop();
  });
  for (int launch = 0; launch < options_.workers + options_.servers; ++launch) {
    launched_[launch] = Clock::now();
    const bool server = launch >= options_.workers;
    const Order order{.launch = launch,
                      .role = server ? MachineRole{.server = true} : MachineRole{.limits = options_.limits}};
    engine_->order({&order, 1});
  }
  const auto all = static_cast<std::size_t>(options_.workers) + static_cast<std::size_t>(options_.servers);
  return wait_until(
      [this, all] {
        return people_.size() == all &&
               std::all_of(people_.begin(), people_.end(), [](const auto& entry) { return entry.second.ready; });
      },
      "all workers to load the job");
}

Result<Welcome> Workshop::hello(const Hello& hello) {
  const bool server = hello.role == "server";
  if (hello.worker || hello.launch < 0 || (!server && hello.role != "worker")) return fail("nobody is awaited");
  const WorkerId id = hello.launch;  // one launch each: numbers follow the engine's
  if (people_.contains(id)) return fail("it is here already");
  people_[id] = {.launch = hello.launch, .pid = hello.pid, .server = server};
  return Welcome{.worker = id,
                 .job = options_.job_text,
                 .job_file = options_.job_file.string(),
                 .directory = (options_.directory / "checkpoints").string(),
                 .lease_s = kSilence.count(),
                 .orphan_s = kSilence.count(),
                 .seed = static_cast<std::int64_t>(options_.spec.train->seed),
                 .sum = options_.spec.train->sum,
                 .clip = options_.spec.train->clip};
}

void Workshop::lost(const std::string& why) {
  if (!failure_) failure_ = why;
  loop_.stop();
}

Result<void> Workshop::wait_until(const std::function<bool()>& holds, const std::string& what) {
  if (interrupted_) return fail("interrupted");
  if (failure_) return fail("{}", *failure_);
  if (holds()) return {};
  holds_ = holds;
  bool late = false;
  Timer patience(loop_);
  awake_ = [&] {
    patience.start(options_.patience, [&] {
      late = true;
      loop_.stop();
    });
  };
  awake_();
  loop_.run();
  holds_ = {};
  awake_ = {};
  if (interrupted_) return fail("interrupted");
  if (failure_) return fail("{}", *failure_);
  if (late) {
    failure_ = fmt::format("waited {} for {}; the workers' last words are in {}", format_duration(options_.patience),
                           what, (options_.directory / "logs").string());
    return fail("{}", *failure_);
  }
  return {};
}

void Workshop::hear(WorkerId from, const FromMember& message) {
  const auto found = people_.find(from);
  if (found == people_.end() || std::holds_alternative<Alive>(message)) return;
  if (awake_) awake_();
  Person& person = found->second;
  const auto current = [&](std::int64_t formation) { return crew_ && formation == crew_->formation(); };
  std::visit(
      Overloaded{
          [&](const Ready& ready) {
            person.ready = true;
            person.address = ready.address;
            if (person.server) return;
            ready_.push_back(ready);
            start_time_ = std::max(start_time_, Seconds(Clock::now() - launched_[person.launch]));
          },
          [&](const Unable& unable) { lost(unable.what); },
          [&](const Measurement& used) { person.answer = used; },
          [&](const CheckpointWritten& written) { written_ = written; },
          [&](const CheckpointFailed& failed) { lost("no checkpoint: " + failed.what); },
          [&](const Formed& formed) {
            if (current(formed.formation)) formed_.insert(from);
          },
          [&](const Broken& broken) {
            if (current(broken.formation)) lost("workers have lost each other: " + broken.what);
          },
          [&](const StepDone& done) { note_report(from, done.wait_s.value_or(0), done.compute_s, done.exchange_s); },
          [&](const Pushed& pushed) {
            note_report(from, pushed.wait_s.value_or(0), pushed.compute_s, pushed.pull_s + pushed.push_s);
          },
          Ignoring<void, Reachable>{},        // for the crew
          Ignoring<void, Leaving, AtRisk>{},  // its end is noticed
          Ignoring<void, Fed, Alive>{},
      },
      message);
  if (crew_) {
    const auto step = crew_->hear(from, message);
    if (step && step->range.count > 0) commit(*step);
    deliver();
  }
  if (holds_ && holds_()) loop_.stop();
}

void Workshop::deliver() {
  for (const Letter& letter : crew_->letters()) desk_->send(letter.to, letter.message);
}

}  // namespace mayfly
