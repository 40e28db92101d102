#include "vault/shelves.h"

#include <gtest/gtest.h>

#include <future>

#include "base/file.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

/// A job's folder with the shelf over it; answers are waited for.
class Job {
 public:
  /// What is on the shelf: a path below the job's folder; empty: nothing.
  explicit Job(const std::string& path = "") {
    fs::create_directories(folder_.path() / "data");
    fs::create_directories(checkpoints());
    write("train.py", "print()");
    write("data/a.bin", "aaaa");
    std::vector<ShelfRoot> roots;
    if (!path.empty())
      roots.push_back({.name = ("job" / fs::path(path)).lexically_normal(), .path = folder_.path() / path});
    shelves_.emplace(std::move(roots), checkpoints(), [](const std::function<void()>& call) { call(); });
  }
  void write(const std::string& name, std::string_view text) { ASSERT_TRUE(save_text(folder_.path() / name, text)); }
  fs::path checkpoints() const { return folder_.path() / "run" / "checkpoints"; }
  ToCarrier ask(FromCarrier message) {
    std::promise<ToCarrier> answer;
    shelves_->ask(std::move(message), [&](const ToCarrier& said) { answer.set_value(said); });
    return answer.get_future().get();
  }
  std::vector<std::string> names() {
    const ToCarrier answer = ask(Browse{});
    const auto* shelved = std::get_if<Shelved>(&answer);
    return shelved == nullptr ? std::vector<std::string>{} : shelved->names;
  }
  std::string refusal(FromCarrier message) {
    const ToCarrier answer = ask(std::move(message));
    const auto* undone = std::get_if<Undone>(&answer);
    return undone == nullptr ? "" : undone->why;
  }
  std::string content(const std::string& name) {
    const ToCarrier answer = ask(Fetch{.name = name, .count = 100});
    const auto* piece = std::get_if<Piece>(&answer);
    return piece == nullptr ? "none" : piece->bytes;
  }
  /// A whole checkpoint but for what `but` names.
  void bring(const std::string& name, const std::string& but = "") {
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "trainer_state.json"}) {
      if (file != but) (void)ask(Bring{.checkpoint = name, .file = file, .bytes = file});
    }
  }

 private:
  support::TempFolder folder_{};
  std::optional<Shelves> shelves_{};
};

TEST(Shelves, HoldWhatTheJobNamesAndNothingElse) {
  Job job("data");
  EXPECT_EQ(job.names(), std::vector<std::string>{"job/data/a.bin"});
  EXPECT_EQ(job.content("job/data/a.bin"), "aaaa");
  for (const char* name : {"job/train.py", "/etc/passwd", "job/data/../train.py", "checkpoints/../token",
                           "checkpoints/checkpoint-1/../../token", "checkpoints/checkpoint-1/token"})
    EXPECT_NE(job.refusal(Fetch{.name = name, .count = 1}).find("no file of this run"), std::string::npos) << name;
}

TEST(Shelves, LeaveOutOfAFolderWhatIsHiddenAndWhatRunsWrote) {
  Job job(".");
  for (const char* name : {".git/config", "__pycache__/a.pyc", "mayfly-runs/x/token", "run/token"}) {
    fs::create_directories((job.checkpoints().parent_path().parent_path() / name).parent_path());
    job.write(name, "secret");
  }
  job.write("run/request.json", "{}");
  job.write("run/journal.jsonl", "");
  EXPECT_EQ(job.names(), (std::vector<std::string>{"job/data/a.bin", "job/train.py"}));
}

TEST(Shelves, WhatHasChangedIsSeenAtTheNextLook) {
  Job job("data");
  const auto seen = [&] { return std::get<Shelved>(job.ask(Browse{})).hashes; };
  const auto before = seen();
  job.write("data/a.bin", "bbbbb");
  EXPECT_NE(seen(), before);
}

// "trainer_state.json" is 18 bytes.
TEST(Shelves, ACheckpointAppearsWhenAllOfItIsThere) {
  Job job;
  job.bring("checkpoint-7", "optimizer.safetensors");
  EXPECT_NE(job.refusal(Keep{.checkpoint = "checkpoint-7"}).find("optimizer.safetensors was not brought"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(job.checkpoints() / "checkpoint-7"));
  job.bring("checkpoint-7");
  const ToCarrier kept = job.ask(Keep{.checkpoint = "checkpoint-7"});
  ASSERT_TRUE(std::holds_alternative<Kept>(kept));
  EXPECT_EQ(std::get<Kept>(kept).path, (job.checkpoints() / "checkpoint-7").string());
  EXPECT_EQ(job.content("checkpoints/checkpoint-7/trainer_state.json"), "trainer_state.json");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(job.checkpoints())) ++files;
  EXPECT_EQ(files, 1U) << "nothing is left beside it";
}

TEST(Shelves, PiecesComeInOrderOrFromTheBeginning) {
  Job job;
  const Bring first{.checkpoint = "checkpoint-7", .file = "model.safetensors", .bytes = "abc"};
  EXPECT_TRUE(std::holds_alternative<Taken>(job.ask(first)));
  Bring gap = first;
  gap.offset = 5;
  EXPECT_NE(job.refusal(gap).find("3 bytes of model.safetensors are here"), std::string::npos);
  EXPECT_TRUE(std::holds_alternative<Taken>(job.ask(first))) << "a writer that begins anew";
}

TEST(Shelves, NamesThatAreNoCheckpointsAreRefused) {
  Job job;
  for (const char* name : {"..", "checkpoint--1", "checkpoint-1/../x", "checkpoint-01", "latest", "checkpoint-1e300"})
    EXPECT_NE(job.refusal(Bring{.checkpoint = name, .file = "model.safetensors"}).find("no name of a checkpoint"),
              std::string::npos)
        << name;
  EXPECT_NE(job.refusal(Bring{.checkpoint = "checkpoint-1", .file = "../token"}).find("no file of a checkpoint"),
            std::string::npos);
  EXPECT_TRUE(fs::is_empty(job.checkpoints()));
}

}  // namespace
}  // namespace mayfly
