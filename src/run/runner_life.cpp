// How a run begins, what is looked at while it goes on, and how it ends.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "base/text.h"
#include "data/checkpoint.h"
#include "predict/checkpoint_interval.h"
#include "run/runner.h"
#include "wire/file_limit.h"

namespace mayfly {
namespace {

constexpr Seconds kPulse{0.25};
constexpr Seconds kReport{0.5};
constexpr std::int64_t kOwnFiles = 64;
/// Its connection, its process, and for a moment a second connection.
constexpr std::int64_t kFilesPerMachine = 3;
/// processes.json waits so long for others that come, for each one in it: a long list takes longer to write.
constexpr Seconds kListEach{1e-4};
/// A formation that takes longer has a member that is alive and does not work.
constexpr Seconds kFormationPatience{10};
/// Before a broken mesh is built again with the same members; a lost one is usually known by then.
constexpr Seconds kReformAfter{0.3};
constexpr Seconds kEndPatience{5};
constexpr Seconds kScriptPatience{60};
constexpr Seconds kSavePatience{60};
constexpr Seconds kSaveAgain{0.5};
constexpr Seconds kStepPatience{5};
/// Taken for granted before losses were seen: one an hour.
constexpr Seconds kAssumedBetweenLosses{3600};

}  // namespace

std::filesystem::path Runner::checkpoints() const {
  const auto& named = train_.checkpoint.directory;
  return named.empty() ? inputs_.directory / "checkpoints" : inputs_.job_file.parent_path() / named;
}

void Runner::say(const std::string& text) {
  remark(text);
  calls_.say(text);
}

void Runner::remark(const std::string& text) {
  const Seconds time = now();
  keep({{"t_s", time.count()}, {"remark", text}});
  status_.remember({time, text});
}

void Runner::read(Json reading) {
  Json line{{"t_s", now().count()}};
  line.update(reading);
  keep(line);
}

void Runner::keep(const Json& line) {
  const std::string text = line.dump();
  if (const auto kept = store_.append_remark(text); !kept) return fail_run(kept.error().message);
  journal_.add_line(text);
}

Result<void> Runner::open() {
  std::error_code error;
  std::filesystem::create_directories(inputs_.directory / "logs", error);
  std::filesystem::create_directories(checkpoints(), error);
  if (error) return fail("{}: cannot create: {}", checkpoints().string(), error.message());
  const auto kept = load_text(inputs_.directory / "token");
  const auto token = kept ? std::string(trimmed(*kept)) : fresh_token(inputs_.interface != "lo");
  if (!token) return unexpected(token.error());
  const auto credentials = Credentials::from(*token);
  if (!credentials) return fail("{}: {}", (inputs_.directory / "token").string(), credentials.error().message);
  if (auto restored = restore(); !restored) return restored;
  const auto port = store_.noted("port");
  Desk::Calls calls{.hello = [this](const Hello& word) { return hello(word); },
                    .connected = [this](WorkerId worker, const Hello& word) { connected(worker, word); },
                    .message = [this](WorkerId worker, const Message& message) { hear(worker, message); },
                    .closed = [this](WorkerId worker) { link_closed(worker); },
                    .order = [this](const Message& message) { return order(message); },
                    .failed = [this](const std::string& why) { not_let_in(why); }};
  auto desk =
      Desk::open(loop_, inputs_.address, static_cast<std::uint16_t>(parse_integer(port.value_or("0")).value_or(0)),
                 *credentials, calls);
  if (!desk && port) desk = Desk::open(loop_, inputs_.address, 0, *credentials, calls);
  if (!desk) return unexpected(desk.error());
  desk_ = *std::move(desk);
  const std::string address = fmt::format("{}:{}", inputs_.address, desk_->port());
  if (auto noted = store_.note("port", std::to_string(desk_->port())); !noted) return noted;
  if (auto saved = save_text(inputs_.directory / "address", address + "\n"); !saved) return saved;
  const mode_t others = ::umask(077);  // whoever reads the token may join the run
  auto saved = save_text(inputs_.directory / "token", *token + "\n");
  ::umask(others);
  if (!saved) return saved;
  LocalEngine::Options engine{
      .program = inputs_.program,
      .arguments = {"--join", address, "--interface", inputs_.interface, "--notices", inputs_.notices},
      .script = inputs_.script,
      .join = address,
      .logs = inputs_.directory / "logs",
      .token = *token,
      .notice = inputs_.times.notice,
      .capacity = inputs_.workers};
  machines_ = std::make_unique<LocalMachines>(
      loop_, inputs_, std::move(engine), [this] { return now(); },
      LocalMachines::Calls{.ended = [this](int launch, const Ending& ending) { machine_ended(launch, ending); },
                           .say = [this](const std::string& text) { say(text); },
                           .changed = [this] { note_processes(); }});
  const Json processes = Json::parse(store_.noted("processes").value_or("[]"), nullptr, false);
  first_launch_ = parse_integer(store_.noted("launch").value_or("0")).value_or(0);
  if (controller_.finished()) machines_->close();
  if (auto begun = machines_->begin(first_launch_, processes.is_array() ? processes : Json::array()); !begun)
    return begun;
  if (controller_.finished()) {
    // Its controller died after the last word was stored.
    machines_->kill_all();
    end(controller_.why_finished() == Finish::Why::target ? RunEnd::trained : RunEnd::budget);
  } else if (members_.empty()) {
    begin_training();
  } else {
    patience_.start(2 * inputs_.times.lease, [this] { begin_training(); });
  }
  check_file_limit();
  return {};
}

void Runner::check_file_limit() {
  const std::int64_t limit = raised_file_limit();
  const std::int64_t machines = inputs_.job->shapes.most_machines() + inputs_.servers.count;
  const std::int64_t needed = kOwnFiles + kFilesPerMachine * machines;
  if (limit >= needed) return;
  say(fmt::format(
      "{} machines may need {} open files, {} are allowed: raise the hard limit (ulimit -Hn), or the last ones "
      "cannot connect",
      machines, needed, limit));
}

void Runner::not_let_in(const std::string& why) {
  if (std::exchange(told_not_let_in_, true)) return;
  say(fmt::format("somebody cannot connect to the controller: {}; tried again until it works", why));
}

Result<void> Runner::restore() {
  const auto lines = store_.lines();
  if (!lines) return unexpected(lines.error());
  std::optional<Wake> wake;
  for (const std::string& line : *lines) {
    const auto event = event_in(line);
    if (!event) {
      journal_.add_line(line);
      if (const auto said = remark_in(line)) status_.remember(*said);
      continue;
    }
    last_now_ = std::max(last_now_, event->time);
    const Reaction reaction = controller_.step(event->time, event->event);
    journal_.add(*event, reaction.records);
    if (const auto* joined = std::get_if<Joined>(&event->event)) {
      last_worker_ = std::max(last_worker_, joined->worker);
      members_[joined->worker] = {.ready = true, .joined = true, .since = event->time};
    }
    if (const auto* lost = std::get_if<Lost>(&event->event)) members_.erase(lost->worker);
    if (const auto* estimated = std::get_if<Estimated>(&event->event))
      target_ = static_cast<std::int64_t>(estimated->samples);
    for (const Command& command : reaction.commands) {
      if (const auto* assign = std::get_if<Assign>(&command)) assigned_ = *assign;
      if (std::holds_alternative<Pause>(command)) assigned_.reset();
      if (const auto* release = std::get_if<Release>(&command)) members_.erase(release->worker);
      if (const auto* asked = std::get_if<Wake>(&command)) wake = *asked;
    }
  }
  if (assigned_) assigned_->next_sample = controller_.committed();
  const Json counts = Json::parse(store_.noted("accounts").value_or("{}"), nullptr, false);
  if (counts.is_object())
    accounts_.restore(counts.value("preemptions", 0), counts.value("samples_redone", std::int64_t{0}));
  last_worker_ = std::max(last_worker_, parse_integer(store_.noted("worker").value_or("0")).value_or(0));
  epoch_ = parse_integer(store_.noted("epoch").value_or("0")).value_or(0);
  if (epoch_ > 0) guard_.emplace(inputs_, epoch_);
  checkpoint_time_ = last_now_;
  crew_ = make_crew(parse_integer(store_.noted("formation").value_or("0")).value_or(0));
  crew_->restore(store_.noted("crew").value_or(""), static_cast<std::int64_t>(controller_.committed()));
  if (servers_ != nullptr) {
    for (const WorkerId server : servers_->servers())
      members_[server] = {.ready = true, .joined = true, .server = true};
  }
  formation_seen_ = crew_->formation();
  zero_ = std::chrono::steady_clock::now() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(last_now_);
  if (wake) obey(*wake);
  return {};
}

void Runner::pulse() {
  pulse_.start(kPulse, [this] { pulse(); });
  if (!machines_) return;
  journal_.flush();
  // Whoever was held up itself has not read what the others said meanwhile.
  const bool held_up = now() - std::exchange(pulsed_, now()) > 2 * kPulse;
  if (!held_up) check_silence();
  check_formation();
  check_checkpoint();
  check_saving();
  check_last_holders();
  // A machine that had its notice is not needed once the others train without it, or what it holds is saved.
  if (crew_->training() || (!checkpoint_asked_ && crew_->sample() <= checkpoint_sample_)) {
    std::vector<WorkerId> idle;
    for (const auto& [worker, member] : members_) {
      if (member.leaving && !crew_->stands(worker)) idle.push_back(worker);
    }
    for (const WorkerId worker : idle) desk_->send(worker, Leave{"preempted"});
  }
  if (phase_ == Phase::training && calls_.progress) report();
  deliver();
  if (status_.due(now())) write_status();
}

void Runner::check_silence() {
  if (phase_ == Phase::attaching) return;
  std::vector<WorkerId> silent;
  for (const auto& [worker, member] : members_) {
    const auto closed = closed_.find(worker);
    if (closed != closed_.end() && now() - closed->second > inputs_.times.lease) silent.push_back(worker);
    if (closed == closed_.end() && desk_->silence(worker) > inputs_.times.lease) silent.push_back(worker);
  }
  for (const WorkerId worker : silent) lose(worker, fmt::format("silent for {}", format_duration(inputs_.times.lease)));
}

void Runner::check_formation() {
  if (phase_ == Phase::attaching || crew_->ranks().empty()) return;
  // Where a member is gone the controller has been told, and decides.
  if (!crew_->complete()) return;
  const Seconds age = now() - formation_time_;
  if (crew_->broken() && age > kReformAfter) {
    if (!crew_->form_again()) roll_back();
    return deliver();
  }
  if (crew_->training() || age < kFormationPatience) return;
  const auto awaited = crew_->awaited();
  formation_time_ = now();
  if (awaited.size() < crew_->ranks().size()) {
    for (const WorkerId worker : awaited) lose(worker, "did not come into formation");
  } else if (!awaited.empty()) {
    if (!crew_->form_again()) roll_back();
  }
  deliver();
}

void Runner::check_checkpoint() {
  if (phase_ != Phase::training || checkpoint_asked_ || !crew_->training()) return;
  if (crew_->sample() <= checkpoint_sample_) return;
  if (target_ && crew_->sample() >= *target_) {
    // Nothing else is left to do; the last attempt failed or was of an earlier state.
    if (now() - checkpoint_time_ < kSaveAgain) return;
    request_checkpoint();
    return deliver();
  }
  const Seconds between = (now() + kAssumedBetweenLosses) / (accounts_.preemptions() + 1);
  const Seconds interval = train_.checkpoint.every.value_or(checkpoint_interval(checkpoint_cost_, between));
  if (now() - checkpoint_time_ < interval) return;
  request_checkpoint();
  deliver();
}

void Runner::check_saving() {
  if (phase_ != Phase::saving || ended_) return;
  const bool nobody =
      std::none_of(members_.begin(), members_.end(), [](const auto& entry) { return entry.second.joined; });
  // Whoever held more than the newest checkpoint is lost, and nobody comes any more.
  if (nobody || crew_->sample() <= checkpoint_sample_) end(RunEnd::stopped);
}

void Runner::stop(int) {
  if (++signals_seen_ > 1 || phase_ == Phase::ending) {
    if (!ended_) ended_ = RunEnd::stopped;
    machines_->close();
    machines_->kill_all();
    return loop_.stop();
  }
  if (phase_ != Phase::training) return;  // looked at again when those who hold the state are back
  phase_ = Phase::saving;
  machines_->close();
  const bool held = servers_ != nullptr ? !crew_->stateless()
                                        : std::any_of(crew_->ranks().begin(), crew_->ranks().end(),
                                                      [&](WorkerId worker) { return crew_->alive(worker); });
  if (!held || crew_->sample() <= checkpoint_sample_) return end(RunEnd::stopped);
  calls_.say("saving; once more to end at once");
  // The step in hand is waited for, if it does not take too long.
  patience_.start(kStepPatience, [this] {
    patience_.start(kSavePatience, [this] { fail_run("stopped, but no worker could write a last checkpoint"); });
    request_checkpoint();
    deliver();
  });
}

/// A script may have something to do behind its loop.
Seconds Runner::end_patience() const { return inputs_.script ? kScriptPatience : kEndPatience; }

void Runner::end(RunEnd how) {
  if (phase_ == Phase::ending) return;
  if (checkpoint_asked_ && how == RunEnd::budget) {
    // Machines wait for their last checkpoint, but not at any price.
    phase_ = Phase::saving;
    patience_.start(kSavePatience, [this] {
      checkpoint_asked_ = false;
      end(RunEnd::budget);
    });
    ended_ = how;
    return;
  }
  if (!ended_) ended_ = how;
  phase_ = Phase::ending;
  machines_->close();
  std::vector<WorkerId> all;
  for (const auto& [worker, member] : members_) all.push_back(worker);
  std::vector<int> known;
  for (const WorkerId worker : all) {
    const bool joined = members_[worker].joined && !members_[worker].server;
    known.push_back(members_[worker].launch);
    dismiss(worker, "the run has ended");
    if (joined && !controller_.finished()) tell(Lost{worker});
  }
  deliver();
  // Whoever has not said Hello yet is nobody's and holds nothing.
  for (const int launch : machines_->launches()) {
    const bool stranger = std::find(known.begin(), known.end(), launch) == known.end();
    if (stranger && !machines_->released(launch)) machines_->kill(launch);
  }
  patience_.start(end_patience(), [this] {
    machines_->kill_all();
    patience_.start(Seconds(1), [this] { loop_.stop(); });
  });
  end_when_empty();
}

void Runner::fail_run(std::string why) {
  if (failure_) return;
  failure_ = std::move(why);
  phase_ = Phase::ending;
  machines_->close();
  for (const auto& [worker, member] : members_) desk_->send(worker, Leave{"the run has failed"});
  patience_.start(kEndPatience, [this] {
    machines_->kill_all();
    loop_.stop();
  });
  end_when_empty();
}

void Runner::end_when_empty() {
  if (phase_ == Phase::ending && machines_ && machines_->running() == 0) loop_.stop();
}

void Runner::note_processes() {
  if (!machines_) return;
  static_cast<void>(store_.note("processes", machines_->processes().dump()));
  static_cast<void>(store_.note("launch", std::to_string(machines_->next_launch())));
  list_processes();
}

void Runner::list_processes() {
  Json workers = Json::array();
  Json servers = Json::array();
  for (const auto& [worker, member] : members_) {
    Json& list = member.server ? servers : workers;
    const pid_t started = machines_->pid(member.launch);
    const auto pid = started > 0 && member.pid > 0 ? static_cast<pid_t>(member.pid) : started;
    list.push_back({{"worker", worker}, {"slot", member.launch}, {"pid", pid}, {"started", start_ticks(pid)}});
  }
  const Json document{{"controller", ::getpid()},
                      {"controller_started", start_ticks(::getpid())},
                      {"front", ::getppid()},
                      {"workers", workers},
                      {"servers", servers}};
  static_cast<void>(save_text(inputs_.directory / "processes.json", document.dump() + "\n"));
}

void Runner::list_processes_soon() {
  if (std::exchange(listing_, true)) return;
  list_.start(kListEach * static_cast<double>(members_.size()), [this] {
    listing_ = false;
    list_processes();
  });
}

void Runner::report() {
  if (!calls_.progress || now() - reported_ < kReport) return;
  reported_ = now();
  RunProgress progress{.time = now(),
                       .step = crew_->sample() / train_.batch,
                       .samples = crew_->sample(),
                       .target = target_,
                       .loss = accounts_.loss().value_or(0),
                       .samples_per_s = crew_->training() ? accounts_.samples_per_s(now()) : 0,
                       .machines = static_cast<int>(crew_->training() ? crew_->ranks().size() : 0),
                       .deadline = inputs_.spec.deadline};
  if (inputs_.priced) progress.spent = controller_.spent();
  if (target_ && progress.samples_per_s > 0)
    progress.left = Seconds(static_cast<double>(*target_ - crew_->sample()) / progress.samples_per_s);
  calls_.progress(progress);
}

}  // namespace mayfly
