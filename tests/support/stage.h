#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/safetensors.h"
#include "support/temp_folder.h"
#include "support/token.h"
#include "wire/loop.h"

namespace mayfly::support {

inline constexpr const char* kCountJob = R"(name: count
train:
  model: {name: count}
  data: {name: count, samples: 12}
  optimiser: {kind: sgd, rate: 1}
  reduction: sum
  batch: 4
)";

/// Real mayfly-train processes on loopback and a controller that does what the test says. The job counts: every weight
/// ends up as the number of times its sample was trained.
class Stage {
 public:
  Stage() {
    terms = {
        .job = kCountJob, .job_file = folder / "job.yaml", .directory = folder, .heartbeat_s = 0.1, .orphan_s = 30};
    listener_ = std::move(Listener::open(loop_, "127.0.0.1", 0, known(),
                                         {.accepted = [this](std::unique_ptr<Link> link) { admit(std::move(link)); }})
                              .value());
  }
  ~Stage() {
    for (auto& [slot, pid] : processes) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  /// `flags`: further words for the command line.
  void start(int slot, const std::string& role = "worker", const std::vector<std::string>& flags = {}) {
    const auto join = fmt::format("127.0.0.1:{}", listener_->port());
    const auto number = std::to_string(slot);
    std::vector<const char*> words{MAYFLY_TRAIN, role.c_str(), "--join", join.c_str(), "--slot", number.c_str()};
    for (const auto& flag : flags) words.push_back(flag.c_str());
    words.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("MAYFLY_TOKEN", kToken, 1);
      ::setenv("OMP_NUM_THREADS", "1", 1);
      ::execv(MAYFLY_TRAIN, const_cast<char* const*>(words.data()));
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
        const FromMember message = std::move(inbox.front());
        inbox.erase(inbox.begin());
        if (const auto* found = std::get_if<M>(&message)) return *found;
      }
      loop_.run();
    }
    ADD_FAILURE() << "worker " << slot << " did not say message " << FromMember(M{}).index();
    return {};
  }
  void send(int slot, const ToMember& message) {
    if (links_[slot]) links_[slot]->send<ToMember>(message);
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
    return counts_in(expect<CheckpointWritten>(slot), sample);
  }
  static std::vector<float> counts_in(const CheckpointWritten& written, std::int64_t sample) {
    EXPECT_EQ(written.sample, sample);
    const auto file = load_safetensors(std::filesystem::path(written.path) / "model.safetensors");
    EXPECT_TRUE(file) << file.error().message;
    std::vector<float> values(12);
    if (file) std::memcpy(values.data(), file->find("weight")->bytes.data(), sizeof(float) * values.size());
    return values;
  }
  /// Returns once it stands still: until then its other threads go on answering.
  void freeze(int slot) {
    ::kill(processes[slot], SIGSTOP);
    ::waitpid(processes[slot], nullptr, WUNTRACED);
  }
  /// Returns once it is gone.
  void kill(int slot) {
    ::kill(processes[slot], SIGKILL);
    exit_code(slot);
  }
  int exit_code(int slot) {
    int status = 0;
    ::waitpid(processes[slot], &status, 0);
    processes.erase(slot);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TempFolder own{};  ///< outlives what writes into it
  const std::filesystem::path& folder = own.path();
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
    guest.link->start<ToController>({.message =
                                         [this, &guest](ToController message) {
                                           if (guest.slot >= 0)
                                             return take(guest.slot, std::get<FromMember>(std::move(message)));
                                           meet(guest, std::get<Hello>(message));
                                         },
                                     .closed = [](const std::string&) {}});
  }
  void meet(Guest& guest, const Hello& hello) {
    if (silent) return;
    guest.slot = hello.launch;
    hellos[hello.launch] = hello;
    inboxes_[hello.launch].clear();
    if (refuses_known && hello.worker) {
      guest.link->send<ToMember>(Refused{.why = "lease ended"});
      return guest.link->close();
    }
    links_[hello.launch] = guest.link.get();
    terms.worker = hello.launch;
    send(hello.launch, terms);
  }
  void take(int slot, FromMember message) {
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
  std::map<int, std::vector<FromMember>> inboxes_{};
};

}  // namespace mayfly::support
