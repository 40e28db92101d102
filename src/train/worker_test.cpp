#include "train/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <list>
#include <map>

#include "data/checkpoint.h"

namespace mayfly {
namespace {

// Real worker processes on loopback and a controller that does what the test says. The job counts: every weight ends
// up as the number of times its sample was trained.
constexpr const char* kJob = R"(name: count
train:
  model: {name: count}
  data: {name: count, samples: 12}
  optimiser: {kind: sgd, rate: 1}
  reduction: sum
  batch: 4
)";

class Stage {
 public:
  Stage() {
    std::string pattern = (std::filesystem::temp_directory_path() / "worker_test.XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    terms = {.job = kJob, .job_file = folder / "job.yaml", .directory = folder, .heartbeat_s = 0.1, .orphan_s = 30};
    listener_ = std::move(
        Listener::open(loop_, "127.0.0.1", 0, [this](std::unique_ptr<Link> link) { admit(std::move(link)); }).value());
  }
  ~Stage() {
    for (auto& [slot, pid] : processes) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder);
  }

  void start(int slot) {
    const auto join = fmt::format("127.0.0.1:{}", listener_->port());
    const auto number = std::to_string(slot);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("MAYFLY_TOKEN", "secret", 1);
      ::setenv("OMP_NUM_THREADS", "1", 1);
      ::execl(MAYFLY_TRAIN, MAYFLY_TRAIN, "worker", "--join", join.c_str(), "--slot", number.c_str(), nullptr);
      ::_exit(127);
    }
    processes[slot] = pid;
  }
  /// The next message of this kind from this worker; others are passed over. Fails after a while.
  template <class M>
  M expect(int slot) {
    Timer late(loop_);
    bool over = false;
    late.start(Seconds(60), [&] {
      over = true;
      loop_.stop();
    });
    while (!over) {
      auto& inbox = inboxes_[slot];
      while (!inbox.empty()) {
        const Message message = std::move(inbox.front());
        inbox.erase(inbox.begin());
        if (const auto* found = std::get_if<M>(&message)) return *found;
      }
      loop_.run();
    }
    ADD_FAILURE() << "worker " << slot << " did not say message " << Message(M{}).index();
    return {};
  }
  void send(int slot, const Message& message) {
    if (links_[slot]) links_[slot]->send(message);
  }
  void hang_up(int slot) {
    for (auto& guest : guests_) {
      if (guest.slot == slot) guest.link.reset();
    }
    links_[slot] = nullptr;
    inboxes_[slot].clear();
  }
  void form(std::int64_t formation, const std::vector<int>& slots, Form what) {
    what.formation = formation;
    what.size = static_cast<int>(slots.size());
    for (what.rank = 0; what.rank < what.size; ++what.rank) send(slots[what.rank], what);
    Peers peers{.formation = formation};
    for (const int slot : slots) {
      Reachable word;
      do word = expect<Reachable>(slot);
      while (word.formation < formation && !::testing::Test::HasFailure());
      peers.addresses.push_back(word.address);
    }
    for (const int slot : slots) send(slot, peers);
    for (const int slot : slots) EXPECT_EQ(expect<Formed>(slot).formation, formation);
  }
  void proceed(const std::vector<int>& slots, const Proceed& what) {
    for (const int slot : slots) send(slot, what);
  }
  /// One step; does not commit it.
  void step(const std::vector<int>& slots, const Proceed& what) {
    proceed(slots, what);
    for (const int slot : slots) EXPECT_EQ(expect<StepDone>(slot).first_sample, what.committed);
  }
  /// How often each sample is in this worker's weights.
  std::vector<float> counts(int slot, std::int64_t formation, std::int64_t sample) {
    send(slot, WriteCheckpoint{.formation = formation});
    const auto written = expect<CheckpointWritten>(slot);
    EXPECT_EQ(written.sample, sample);
    const auto file = load_safetensors(std::filesystem::path(written.path) / "model.safetensors");
    EXPECT_TRUE(file) << file.error().message;
    std::vector<float> values(12);
    if (file) std::memcpy(values.data(), file->find("weight")->bytes.data(), sizeof(float) * values.size());
    return values;
  }
  int exit_code(int slot) {
    int status = 0;
    ::waitpid(processes[slot], &status, 0);
    processes.erase(slot);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::filesystem::path folder{};
  Welcome terms{};
  std::map<int, pid_t> processes{};
  std::map<int, Hello> hellos{};
  bool refuses_known = false;
  bool silent = false;

 private:
  struct Guest {
    std::unique_ptr<Link> link{};
    int slot = -1;  ///< once it has said hello
  };
  void admit(std::unique_ptr<Link> link) {
    Guest& guest = guests_.emplace_back(Guest{.link = std::move(link)});
    guest.link->start({.message =
                           [this, &guest](Message message) {
                             if (guest.slot >= 0) return take(guest.slot, std::move(message));
                             meet(guest, std::get<Hello>(message));
                           },
                       .closed = [](const std::string&) {}});
  }
  void meet(Guest& guest, const Hello& hello) {
    EXPECT_EQ(hello.token, "secret");
    if (silent) return;
    guest.slot = hello.slot;
    hellos[hello.slot] = hello;
    inboxes_[hello.slot].clear();
    if (refuses_known && hello.worker) {
      guest.link->send(Refused{.why = "lease ended"});
      return guest.link->close();
    }
    links_[hello.slot] = guest.link.get();
    terms.worker = hello.slot;
    send(hello.slot, terms);
  }
  void take(int slot, Message message) {
    if (std::holds_alternative<Alive>(message)) {
      if (!silent) send(slot, Alive{});
      return;
    }
    inboxes_[slot].push_back(std::move(message));
    loop_.stop();
  }

  Loop loop_{};
  std::unique_ptr<Listener> listener_{};
  std::list<Guest> guests_{};
  std::map<int, Link*> links_{};
  std::map<int, std::vector<Message>> inboxes_{};
};

float total(const std::vector<float>& counts) {
  float sum = 0;
  for (const float count : counts) sum += count;
  return sum;
}

TEST(Worker, AnUpdateIsAppliedOnTheWordThatItCountsAndNeverElse) {
  Stage stage;
  for (const int slot : {0, 1}) stage.start(slot);
  for (const int slot : {0, 1}) EXPECT_EQ(stage.expect<Ready>(slot).samples, 12);
  stage.form(1, {0, 1}, {});
  stage.step({0, 1}, {.formation = 1, .committed = 0, .step = 0, .counts = {3, 1}});
  // The formation ends before the commit: the step is taken back.
  stage.form(2, {1, 0}, {});
  EXPECT_EQ(total(stage.counts(0, 2, 0)), 0);
  stage.step({1, 0}, {.formation = 2, .committed = 0, .step = 0, .counts = {2, 2}});
  // Committed, though its formation is over.
  stage.form(3, {0, 1}, {.sample = 4});
  stage.step({0, 1}, {.formation = 3, .committed = 4, .step = 1, .counts = {0, 4}});
  // A late word of an older formation changes nothing.
  stage.proceed({0, 1}, {.formation = 2, .committed = 8, .step = 2, .counts = {4, 0}});
  stage.step({0, 1}, {.formation = 3, .committed = 8, .step = 2, .counts = {1, 3}});
  stage.proceed({0, 1}, {.formation = 3, .committed = 12, .step = 3});
  for (const int slot : {0, 1}) EXPECT_EQ(stage.counts(slot, 3, 12), std::vector<float>(12, 1));
  for (const int slot : {0, 1}) stage.send(slot, Leave{});
  for (const int slot : {0, 1}) EXPECT_EQ(stage.exit_code(slot), Worker::kDone);
}

TEST(Worker, SurvivorsGoOnWhenAPeerIsKilledOrFrozenAndANewcomerGetsTheState) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    Stage stage;
    for (const int slot : {0, 1, 2}) stage.start(slot);
    for (const int slot : {0, 1, 2}) stage.expect<Ready>(slot);
    stage.form(1, {0, 1}, {});
    stage.step({0, 1}, {.formation = 1, .committed = 0, .step = 0, .counts = {2, 2}});
    ::kill(stage.processes[1], signal);
    stage.proceed({0, 1}, {.formation = 1, .committed = 4, .step = 1, .counts = {2, 2}});
    if (signal == SIGKILL) {
      EXPECT_EQ(stage.expect<Broken>(0).formation, 1);
    }
    const auto start = std::chrono::steady_clock::now();
    stage.form(2, {2, 0}, {.sample = 4, .source = 1, .receivers = {0}});
    EXPECT_LT(Seconds(std::chrono::steady_clock::now() - start).count(), 3);
    stage.step({2, 0}, {.formation = 2, .committed = 4, .step = 1, .counts = {3, 1}});
    ::kill(stage.processes[1], SIGCONT);  // a zombie goes on with what it was told last
    stage.step({2, 0}, {.formation = 2, .committed = 8, .step = 2, .counts = {3, 1}});
    stage.proceed({2, 0}, {.formation = 2, .committed = 12, .step = 3});
    for (const int slot : {2, 0}) EXPECT_EQ(stage.counts(slot, 2, 12), std::vector<float>(12, 1));
  }
}

TEST(Worker, SaysAgainWhatWasNotAnsweredWhenItsLineIsMended) {
  Stage stage;
  stage.start(0);
  const auto ready = stage.expect<Ready>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<Ready>(0), ready);
  EXPECT_EQ(stage.hellos[0].worker, 0);
  stage.send(0, Form{.formation = 1, .size = 1});
  const auto reachable = stage.expect<Reachable>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<Reachable>(0), reachable);
  stage.send(0, Peers{.formation = 1, .addresses = {reachable.address}});
  stage.expect<Formed>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<Formed>(0).formation, 1);
  const Proceed lease{.formation = 1, .counts = {12}};
  stage.send(0, lease);
  const auto done = stage.expect<StepDone>(0);
  stage.hang_up(0);
  EXPECT_EQ(stage.expect<StepDone>(0), done);
  EXPECT_EQ(stage.hellos[0].sample, 0);
  stage.send(0, lease);  // a controller that does not know whether it said so
  EXPECT_EQ(stage.expect<StepDone>(0), done);
  stage.send(0, Proceed{.formation = 1, .committed = 12, .step = 1});
  EXPECT_EQ(stage.counts(0, 1, 12), std::vector<float>(12, 1));
}

TEST(Worker, RefusedItStartsAgainAsANewcomer) {
  Stage stage;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(7, {0}, {});
  stage.step({0}, {.formation = 7, .counts = {12}});
  stage.refuses_known = true;
  stage.hang_up(0);
  stage.expect<Ready>(0);
  EXPECT_FALSE(stage.hellos[0].worker);
  stage.form(3, {0}, {});
  EXPECT_EQ(total(stage.counts(0, 3, 0)), 0);
}

TEST(Worker, AnOrphanSavesItsStateAndEnds) {
  Stage stage;
  stage.terms.orphan_s = 1;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(1, {0}, {});
  stage.step({0}, {.formation = 1, .counts = {4}});
  stage.step({0}, {.formation = 1, .committed = 4, .step = 1, .counts = {4}});
  stage.silent = true;
  stage.hang_up(0);
  EXPECT_EQ(stage.exit_code(0), Worker::kOrphaned);
  const auto found = newest_checkpoint(stage.folder).checkpoint;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state.sample, 4);  // the step whose word never came is not in it
}

TEST(Worker, SaysWhatItCannotDo) {
  Stage stage;
  stage.terms.job = "train: {model: {name: nonsense}}";
  stage.start(0);
  EXPECT_NE(stage.expect<Unable>(0).what.find("job.yaml"), std::string::npos);
  EXPECT_EQ(stage.exit_code(0), Worker::kUnable);
}

TEST(Worker, TellsThatItWillBeTakenAwayAndWorksOn) {
  Stage stage;
  stage.start(0);
  stage.expect<Ready>(0);
  stage.form(1, {0}, {});
  ::kill(stage.processes[0], SIGTERM);
  EXPECT_EQ(stage.expect<Leaving>(0).left_s, 30);
  stage.step({0}, {.formation = 1, .counts = {4}});
  ::kill(stage.processes[0], SIGTERM);
  EXPECT_EQ(stage.exit_code(0), 128 + SIGTERM);
}

}  // namespace
}  // namespace mayfly
