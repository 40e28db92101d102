#include "run/runner.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "base/text.h"
#include "base/untrusted.h"
#include "job/store_url.h"
#include "status/folder.h"
#include "wire/file_limit.h"

namespace mayfly {
namespace {

constexpr Seconds kGlance{0.25};
constexpr Seconds kReport{0.5};
constexpr Seconds kListEvery{10};
constexpr Seconds kClaimPatience{5};
constexpr std::int64_t kOwnFiles = 64;
/// Its connection, its process, and for a moment a second connection.
constexpr std::int64_t kFilesPerMachine = 3;

}  // namespace

Runner::Runner(const RunInputs& inputs, const RunCalls& calls, Store store, Journal journal)
    : inputs_(inputs),
      calls_(calls),
      store_(std::move(store)),
      journal_(std::move(journal)),
      status_(inputs.directory, inputs.supervised) {}

Result<RunSummary> Runner::run() {
  if (const auto opened = open(); !opened) {
    not_opened_ = opened.error().message;
    write_last_status(nullptr);
    if (refused_) return RunSummary{.end = RunEnd::unable, .failure = *not_opened_};
    return unexpected(opened.error());
  }
  signals_ = std::make_unique<SignalWatch>(loop_, std::initializer_list<int>{SIGINT, SIGTERM}, [this](int signal) {
    session_->signal(now(), signal == SIGINT ? Session::Signal::interrupt : Session::Signal::terminate);
    perform();
  });
  pulse();
  if (!session_->over()) loop_.run();
  engine_->finish();
  journal_.flush();
  // What is being published is finished first: the summary is of the newest checkpoint.
  vault_.reset();
  shelves_.reset();
  // Of a writer that was killed, where no checkpoint came after it.
  depot_->tidy();
  if (session_->failure()) write_last_status(nullptr);
  if (session_->ended() == RunEnd::unable) return RunSummary{.end = RunEnd::unable, .failure = *session_->failure()};
  if (session_->failure()) return unexpected(Error{*session_->failure()});
  const auto newest = depot_->newest(session_->lineage());
  if (!newest) return fail("the run has ended, but what it saved cannot be seen: {}", newest.error().message);
  RunSummary result = session_->summary(*newest);
  result.strangers = desk_->strangers();
  if (const auto saved = save_text(inputs_.directory / "summary.json", summary_json(result).dump(2) + "\n"); !saved)
    return unexpected(saved.error());
  write_last_status(&result);
  return result;
}

Result<std::string> Runner::kept_token() {
  const auto path = inputs_.directory / "token";
  std::error_code error;
  const bool there = std::filesystem::symlink_status(path, error).type() != std::filesystem::file_type::not_found;
  auto token = there ? load_secret(path) : fresh_token(inputs_.interface != "lo");
  if (!token) return token;
  token = std::string(trimmed(*token));
  const mode_t others = ::umask(077);  // a process that reads the token may join the run
  const auto saved = save_text(path, *token + "\n");
  ::umask(others);
  if (!saved) return unexpected(saved.error());
  return *token;
}

std::string Runner::join_address() const {
  if (inputs_.advertise.find(':') != std::string::npos) return inputs_.advertise;
  return fmt::format("{}:{}", inputs_.advertise.empty() ? inputs_.address : inputs_.advertise, desk_->port());
}

Result<std::string> Runner::kept_tag() {
  if (auto kept = store_.noted("run")) return *std::move(kept);
  std::string tag = fmt::format("{}-{:08x}", run_name(inputs_.directory), std::random_device{}());
  if (const auto noted = store_.note("run", tag); !noted) return unexpected(noted.error());
  return tag;
}

Result<void> Runner::open_desk(const std::string& token) {
  const auto credentials = Credentials::from(token);
  if (!credentials) return fail("{}: {}", (inputs_.directory / "token").string(), credentials.error().message);
  Desk::Calls calls{.hello = [this](const Hello& word) -> Result<Welcome> {
                      auto welcome = session_->hello(now(), word);
                      perform();
                      if (session_->failure()) return fail("the run has failed");
                      return welcome;
                    },
                    .connected =
                        [this](WorkerId worker, const Hello& word) {
                          session_->connected(now(), worker, word);
                          perform();
                        },
                    .message =
                        [this](WorkerId worker, const FromMember& message) {
                          session_->hear(now(), worker, message);
                          perform();
                        },
                    .closed =
                        [this](WorkerId worker) {
                          session_->closed(now(), worker);
                          perform();
                        },
                    .order =
                        [this](const FromOperator& message) {
                          ToOperator answer = session_->order(now(), message);
                          perform();
                          return answer;
                        },
                    .carry =
                        [this](const FromCarrier& message, const Shelves::Answer& answer) {
                          if (shelves_) shelves_->ask(message, answer);
                        },
                    .failed = [this](const std::string& why) { not_let_in(why); }};
  // The port of before, at which workers of an earlier controller knock; any other where that one is taken and the
  // user asked for none.
  const auto before = inputs_.port > 0 ? inputs_.port : parse_integer(store_.noted("port").value_or("0")).value_or(0);
  auto desk = Desk::open(loop_, inputs_.address, static_cast<std::uint16_t>(before), *credentials, calls);
  if (!desk && before > 0 && inputs_.port == 0) desk = Desk::open(loop_, inputs_.address, 0, *credentials, calls);
  if (!desk) return unexpected(desk.error());
  desk_ = *std::move(desk);
  if (auto noted = store_.note("port", std::to_string(desk_->port())); !noted) return noted;
  return save_text(inputs_.directory / "address", join_address() + "\n");
}

void Runner::start_engine(const std::string& token, const std::string& tag) {
  Engine::Calls calls;
  calls.seen = [this](const Sighting& sight) {
    session_->seen(now(), sight);
    perform();
  };
  calls.priced = [this](const MachineKind& kind, UsdPerHour price) {
    session_->priced(now(), kind, price);
    perform();
  };
  calls.said = [this](const std::string& text) {
    session_->say(now(), text);
    perform();
  };
  const RunTerms terms{
      .run = tag, .join = join_address(), .token = token, .directory = inputs_.directory, .now = [this] {
        return now();
      }};
  engine_ = inputs_.engine.start(loop_, terms, std::move(calls));
}

Result<void> Runner::open() {
  std::error_code error;
  std::filesystem::create_directories(inputs_.directory / "logs", error);
  const auto lines = store_.lines();
  if (!lines) return unexpected(lines.error());
  const auto token = kept_token();
  if (!token) return unexpected(token.error());
  if (auto opened = open_desk(*token); !opened) return opened;
  const auto tag = kept_tag();
  if (!tag) return unexpected(tag.error());
  if (auto opened = open_depot(*tag, !lines->empty()); !opened) return opened;
  const auto notes = store_.notes();
  if (!notes) return unexpected(notes.error());
  const Vault::Options keeping{.keep = inputs_.spec.train->checkpoint.keep};
  vault_ = std::make_unique<Vault>(
      *depot_, keeping, [this](std::function<void()> call) { loop_.post(std::move(call)); },
      [this](const std::string& text) { tell(text); });
  const std::string place = checkpoint_place(inputs_);
  shelves_ = std::make_unique<Shelves>(inputs_.shelf, is_store_url(place) ? "" : place,
                                       [this](std::function<void()> call) { loop_.post(std::move(call)); });
  // Weather goes by the run's time, so that is set before there is an engine.
  session_ = std::make_unique<Session>(inputs_, inputs_.engine.expected);
  zero_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(session_->restore(*lines, *notes));
  start_engine(*token, *tag);
  engine_->adopt(session_->fleet().kept());
  session_->begin(now());
  perform();
  check_file_limit();
  return {};
}

Result<void> Runner::open_depot(const std::string& tag, bool begun) {
  auto opened = mayfly::open_depot(checkpoint_place(inputs_), inputs_.around,
                                   [this](const std::string& text) { loop_.post([this, text] { tell(text); }); });
  if (!opened) {
    refused_ = true;
    return unexpected(opened.error());
  }
  depot_ = *std::move(opened);
  // Workers that are waiting for a controller must not wait for the store, too.
  const auto claimed = depot_->claim(tag, begun ? Seconds(0) : kClaimPatience);
  if (claimed) return {};
  // A run that is under way has claimed it before: a store that is away now is weather.
  if (begun && claimed.error().kind == StoreFailure::Kind::away) {
    calls_.say(claimed.error().message);
    return {};
  }
  refused_ = true;
  return fail("{}", claimed.error().message);
}

void Runner::tell(const std::string& text) {
  if (!session_ || session_->over()) return;
  session_->say(now(), text);
  perform();
}

void Runner::check_file_limit() {
  const std::int64_t limit = raised_file_limit();
  const std::int64_t machines = inputs_.job->shapes.most_machines() + inputs_.servers.count;
  const std::int64_t needed = kOwnFiles + kFilesPerMachine * machines;
  if (limit >= needed) return;
  session_->say(now(), fmt::format("{} machines may need {} open files, {} are allowed: raise the hard limit (ulimit "
                                   "-Hn), or the last ones cannot connect",
                                   machines, needed, limit));
  perform();
}

void Runner::not_let_in(const std::string& why) {
  if (std::exchange(told_not_let_in_, true)) return;
  session_->say(now(), fmt::format("somebody cannot connect to the controller: {}; tried again until it works", why));
  perform();
}

void Runner::perform() {
  if (std::exchange(performing_, true)) return;  // the call that is at it does this too
  for (auto acts = session_->acts(); !acts.empty(); acts = session_->acts()) {
    for (const Act& act : acts) {
      const auto done = std::visit([this](const auto& a) { return perform(a); }, act);
      // What a run that has failed already cannot write down is lost anyway; its workers must still be sent home.
      if (done || session_->failure()) continue;
      session_->fail_run(now(), done.error().message);
      break;  // nothing may follow from what is not written down
    }
  }
  performing_ = false;
  watch_clock();
}

void Runner::watch_clock() {
  const auto due = session_->due();
  if (!due || session_->over()) return alarm_.cancel();
  // Most acts do not move it.
  if (alarm_at_ == due) return;
  alarm_at_ = due;
  alarm_.start(std::max(Seconds(0), *due - now()), [this] {
    alarm_at_.reset();
    session_->pass(now());
    perform();
  });
}

Result<void> Runner::perform(const Letter& letter) {
  desk_->send(letter.to, letter.message);
  return {};
}

Result<void> Runner::perform(const Cut& act) {
  desk_->drop(act.worker);
  return {};
}

Result<void> Runner::perform(const Ask& act) {
  engine_->order(act.orders);
  for (const int launch : act.tells) engine_->tell(launch);
  for (const int launch : act.ends) engine_->end(launch);
  return {};
}

Result<void> Runner::perform(const Record& act) {
  if (!act.stored) {
    const auto start = Clock::now();
    auto stored = act.key.empty() ? store_.append(act.event) : store_.append(act.event, act.key, act.note);
    if (!stored) return stored;
    session_->stored(Clock::now() - start);
  }
  journal_.add(act.event, act.lines);
  return {};
}

Result<void> Runner::perform(const JournalLine& act) {
  if (!act.stored) {
    if (auto stored = store_.append_remark(act.text); !stored) return stored;
  }
  journal_.add_line(act.text);
  if (const auto said = remark_in(act.text)) status_.remember(*said);
  return {};
}

Result<void> Runner::perform(const Note& act) { return store_.note(act.key, act.value); }

Result<void> Runner::perform(const Say& act) {
  calls_.say(act.text);
  return {};
}

Result<void> Runner::perform(const Seek& act) {
  vault_->seek(act.lineage, [this](const FoundCheckpoint& found) {
    session_->sought(now(), found);
    perform();
  });
  return {};
}

Result<void> Runner::perform(const Publish& act) {
  vault_->publish(act.checkpoint.path, [this, checkpoint = act.checkpoint](const Result<void>& result) {
    latest_ = checkpoint.path;
    session_->published(now(), checkpoint, result);
    perform();
  });
  return {};
}

/// processes.json, which is for people.
Result<void> Runner::perform(const List&) {
  Json workers = Json::array();
  Json servers = Json::array();
  for (const auto& [worker, member] : session_->members()) {
    const Fleet::Launch* launch = session_->fleet().find(member.launch);
    const pid_t started = launch != nullptr ? launch->pid : 0;
    // A script's own process is not the machine's, which is its shell.
    const auto pid = started > 0 && member.pid > 0 ? static_cast<pid_t>(member.pid) : started;
    Json one{{"worker", worker},
             {"launch", member.launch},
             {"slot", member.launch},
             {"where", launch != nullptr ? launch->where : ""},
             {"stage", member.leaving ? "leaving" : "running"},
             {"pid", pid},
             {"started", start_ticks(pid)}};
    (member.server ? servers : workers).push_back(std::move(one));
  }
  const Json document{{"controller", ::getpid()},
                      {"controller_started", start_ticks(::getpid())},
                      {"front", ::getppid()},
                      {"workers", workers},
                      {"servers", servers}};
  // A run does not fail for a list that it does not read itself.
  static_cast<void>(save_text(inputs_.directory / "processes.json", document.dump() + "\n"));
  return {};
}

Result<void> Runner::perform(const Close&) {
  loop_.stop();
  return {};
}

void Runner::pulse() {
  pulse_.start(kGlance, [this] { pulse(); });
  if (now() - listed_ > kListEvery) {
    listed_ = now();
    session_->listed(now(), engine_->sights());
    perform();
  }
  journal_.flush();
  report();
  if (status_.due(now())) write_status();
}

void Runner::report() {
  if (!calls_.progress || now() - reported_ < kReport) return;
  reported_ = now();
  calls_.progress(session_->progress());
}

void Runner::write_status() {
  RunStatus status = session_->status();
  std::error_code error;
  const std::filesystem::path place = session_->checkpoints();
  const auto latest = std::filesystem::read_symlink(place / "latest", error);
  status.checkpoint = error ? latest_ : (place / latest).string();
  status_.write(now(), std::move(status));
}

void Runner::write_last_status(const RunSummary* summary) {
  RunStatus last = session_ ? session_->status() : RunStatus{.job = inputs_.spec.name};
  last.phase = "ended";
  last.machines.clear();
  last.samples_per_s.reset();
  last.left.reset();
  last.deadline_met.reset();
  if (summary == nullptr) {
    last.end = "failed";
    last.failure = not_opened_ ? *not_opened_ : session_->failure().value_or("");
  } else {
    last.end = std::string(name(summary->end));
    last.samples = summary->samples;
    last.step = summary->samples / inputs_.spec.train->batch;
    last.loss = summary->loss;
    last.checkpoint = summary->checkpoint;
    if (last.deadline && summary->end == RunEnd::trained) last.deadline_met = summary->time <= *last.deadline;
  }
  status_.write(now(), last);
}

}  // namespace mayfly
