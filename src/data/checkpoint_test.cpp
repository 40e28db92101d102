#include "data/checkpoint.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cmath>
#include <limits>

#include "base/file.h"
#include "data/checkpoint_folder.h"
#include "data/trainer_state.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> kWeights{1, 2, 3, 4};
const std::vector<float> kMoments{0.5, 0.25};

std::vector<TensorView> tensors_of(const char* name, const std::vector<float>& values) {
  return {
      {.name = name, .shape = {static_cast<std::int64_t>(values.size())}, .bytes = std::as_bytes(std::span(values))}};
}

TrainerState state_at(std::int64_t step) {
  return {.sample = step * 64,
          .step = step,
          .loss = 0.1,
          .lineage = {.run = "job-1", .seed = std::numeric_limits<std::uint64_t>::max(), .data = "9 samples"},
          .ledger = {{0, step * 64 - 10}, {step * 64, 10}},
          .job = "a \"job\""};
}

fs::path written(const fs::path& directory, std::int64_t step) {
  const auto path = write_checkpoint(directory, state_at(step), tensors_of("w", kWeights), tensors_of("m", kMoments));
  EXPECT_TRUE(path) << path.error().message;
  return path.value_or(fs::path());
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void truncate(const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }

class Checkpoints : public ::testing::Test {
 protected:
  support::TempFolder folder_{};
  const fs::path& at_ = folder_.path();
};

TEST_F(Checkpoints, ComeBackAsTheyWereWritten) {
  const auto path = written(at_ / "new" / "folder", 5);
  EXPECT_EQ(path, at_ / "new" / "folder" / "checkpoint-5");
  EXPECT_THAT(names_in(path), ElementsAre("model.safetensors", "optimizer.safetensors", "trainer_state.json"));
  EXPECT_THAT(names_in(at_ / "new" / "folder"), ElementsAre("checkpoint-5"));
  const auto saved = open_checkpoint(path);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(saved->state, state_at(5));
  const auto tensors = load_tensors(*saved);
  ASSERT_TRUE(tensors);
  const auto* weights = tensors->model.find("w");
  ASSERT_NE(weights, nullptr);
  EXPECT_TRUE(std::ranges::equal(weights->bytes, std::as_bytes(std::span(kWeights))));
  EXPECT_NE(tensors->optimiser.find("m"), nullptr);
}

TEST_F(Checkpoints, ALossThatIsNoNumberComesBackAsSuch) {
  TrainerState state = state_at(1);
  state.loss = std::numeric_limits<double>::infinity();
  const auto read = parse_state(state_text({.state = state}), "f");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(std::isnan(read->state.loss));
}

TEST_F(Checkpoints, AnyFlippedByteOfTheStateIsFound) {
  const std::string whole = state_text({.state = state_at(3), .files = {{"model.safetensors", {7, 9}}}});
  ASSERT_TRUE(parse_state(whole, "f"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string text = whole;
    text[i] = static_cast<char>(text[i] ^ 1);
    EXPECT_FALSE(parse_state(text, "f")) << text;
    EXPECT_FALSE(parse_state(whole.substr(0, i), "f")) << i;
  }
}

TEST_F(Checkpoints, NamesOfFilesDoNotTellTheFormat) {
  TrainerState state = state_at(3);
  state.job = "mayfly-checkpoint/1";
  const auto read =
      parse_state(state_text({.state = state, .files = {{"a mayfly-checkpoint/1.safetensors", {7, 9}}}}), "f");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->state.job, state.job);
}

TEST_F(Checkpoints, AnotherFormatIsRefusedByName) {
  const auto read = parse_state("{\"format\": \"mayfly-checkpoint/9\", \"x\": 1}", "f");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "f:1: format: 'mayfly-checkpoint/9', want 'mayfly-checkpoint/2'");
}

TEST_F(Checkpoints, TheNewestWholeOneIsFound) {
  EXPECT_FALSE(newest_checkpoint(at_, {}).checkpoint);
  EXPECT_FALSE(newest_checkpoint(at_ / "missing", {}).checkpoint);
  for (const int step : {2, 9, 10, 11, 12, 1}) written(at_, step);
  // Each is broken in a way of its own; 1 too, but it is older.
  fs::remove(at_ / "checkpoint-1" / "model.safetensors");
  truncate(at_ / "checkpoint-10" / "optimizer.safetensors");
  truncate(at_ / "checkpoint-11" / "trainer_state.json");
  std::string bytes = *load_text(at_ / "checkpoint-12" / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 64);
  ASSERT_TRUE(save_text(at_ / "checkpoint-12" / "model.safetensors", bytes));
  fs::create_directory(at_ / "checkpoint-13");
  fs::create_directory(at_ / "checkpoint-99x");
  const auto found = newest_checkpoint(at_, state_at(1).lineage);
  ASSERT_TRUE(found.checkpoint);
  EXPECT_EQ(found.checkpoint->path, at_ / "checkpoint-9");
  EXPECT_THAT(found.broken, ElementsAre(HasSubstr("checkpoint-13/trainer_state.json: no such file"),
                                        HasSubstr("checkpoint-12/model.safetensors: damaged: its checksum is"),
                                        HasSubstr("checkpoint-11/trainer_state.json: damaged"),
                                        HasSubstr("checkpoint-10/optimizer.safetensors: ")));
}

TEST_F(Checkpoints, AnOlderFormatIsReadAndDoesNotSayWhoseItIs) {
  std::string text = state_text({.state = state_at(3)});
  for (const std::string line : {"  \"run\": \"job-1\",\n", "  \"data\": \"9 samples\",\n"})
    text.replace(text.find(line), line.size(), "");
  text.replace(text.find("checkpoint/2"), 12, "checkpoint/1");
  const auto seal = text.rfind("\"xxh3\": \"") + 9;
  text.replace(seal, 16, fmt::format("{:016x}", xxh3_of(std::string_view(text).substr(0, seal - 9))));
  const auto read = parse_state(text, "f");
  ASSERT_TRUE(read) << read.error().message;
  TrainerState wanted = state_at(3);
  wanted.lineage = {.seed = wanted.lineage.seed};
  EXPECT_EQ(read->state, wanted);
  EXPECT_TRUE(check_same(read->state.lineage, state_at(3).lineage));
}

TEST_F(Checkpoints, OneOfAnotherRunOrderOrDataSetIsPassedOver) {
  for (const int step : {1, 2}) written(at_, step);
  const Lineage own = state_at(1).lineage;
  ASSERT_TRUE(newest_checkpoint(at_, own).checkpoint);
  const auto passed = [&](const Lineage& lineage) {
    const auto found = newest_checkpoint(at_, lineage);
    EXPECT_FALSE(found.checkpoint);
    return found.broken.size() == 2 ? found.broken[0] : "";
  };
  EXPECT_THAT(passed({.run = "job-2", .seed = own.seed}), HasSubstr("checkpoint-2: of the run job-1, want job-2"));
  EXPECT_THAT(passed({.run = "job-1", .seed = 5}), HasSubstr("its order of samples has seed 18446744073709551615"));
  EXPECT_THAT(passed({.run = "job-1", .seed = own.seed, .data = "8 samples"}),
              HasSubstr("trained on other data: 9 samples, want 8 samples"));
}

TEST_F(Checkpoints, AFolderBelongsToOneRun) {
  ASSERT_TRUE(claim_folder(at_, "job-1"));
  ASSERT_TRUE(claim_folder(at_, "job-1"));
  const auto other = claim_folder(at_, "job-2");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("holds the checkpoints of another run, job-1"));
  // Without a mark it is known by what lies in it.
  fs::remove(at_ / ".run");
  written(at_, 1);
  EXPECT_FALSE(claim_folder(at_, "job-2"));
  EXPECT_TRUE(claim_folder(at_, "job-1"));
}

TEST_F(Checkpoints, ThePublishedAndTheNewestBeforeItAreKept) {
  for (const int step : {1, 2, 3, 4}) {
    const auto published = publish_checkpoint(at_, written(at_, step), 2);
    ASSERT_TRUE(published) << published.error().message;
  }
  EXPECT_THAT(names_in(at_), ElementsAre("checkpoint-3", "checkpoint-4", "latest"));
  EXPECT_EQ(fs::read_symlink(at_ / "latest"), "checkpoint-4");
  EXPECT_FALSE(publish_checkpoint(at_, at_ / "checkpoint-5", 2));
  EXPECT_EQ(fs::read_symlink(at_ / "latest"), "checkpoint-4");
}

// A run that came back from an older checkpoint, because 8 is broken, goes on below it; 9 is whole and of another hand.
TEST_F(Checkpoints, NewerOnesStayIfTheyAreWhole) {
  for (const int step : {5, 6, 8, 9}) written(at_, step);
  truncate(at_ / "checkpoint-8" / "model.safetensors");
  ASSERT_TRUE(publish_checkpoint(at_, at_ / "checkpoint-6", 1));
  EXPECT_THAT(names_in(at_), ElementsAre("checkpoint-6", "checkpoint-9", "latest"));
}

TEST_F(Checkpoints, WhatIsNotOursIsNeverRemoved) {
  for (const int step : {1, 2, 3, 4}) written(at_, step);
  ASSERT_TRUE(save_text(at_ / "checkpoint-1" / "notes.txt", "mine"));
  fs::rename(at_ / "checkpoint-2", at_ / "elsewhere");
  fs::create_directory_symlink("elsewhere", at_ / "checkpoint-2");
  ASSERT_TRUE(save_text(at_ / "notes.txt", "mine"));
  ASSERT_TRUE(save_text(at_ / ".checkpoint-3.1-1.partial", "a file"));
  fs::create_directory(at_ / "my.partial");
  ASSERT_TRUE(publish_checkpoint(at_, at_ / "checkpoint-4", 1));
  EXPECT_THAT(names_in(at_), ElementsAre(".checkpoint-3.1-1.partial", "checkpoint-1", "checkpoint-2", "checkpoint-4",
                                         "elsewhere", "latest", "my.partial", "notes.txt"));
  EXPECT_EQ(names_in(at_ / "elsewhere").size(), 3U);
  EXPECT_EQ(names_in(at_ / "checkpoint-1").size(), 4U);
}

TEST_F(Checkpoints, AFolderInThePlaceOfTheLinkIsLeftAlone) {
  fs::create_directory(at_ / "latest");
  const auto published = publish_checkpoint(at_, written(at_, 1), 1);
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message, HasSubstr("latest: is not the link that mayfly makes"));
}

TEST_F(Checkpoints, LeftoversGoButNotAWriteUnderWay) {
  fs::create_directory(at_ / ".checkpoint-7.123-1.partial");
  ASSERT_TRUE(save_text(at_ / ".checkpoint-7.123-1.partial" / "model.safetensors", "half"));
  ASSERT_TRUE(save_text(at_ / "network.safetensors.123.partial", "half"));
  ASSERT_TRUE(save_text(at_ / "network.safetensors.124.partial", "half"));
  const OpenFile writer(::open((at_ / "network.safetensors.124.partial").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(writer.descriptor(), LOCK_EX), 0);
  const auto under_way = WorkFolder::create(at_, 8);
  ASSERT_TRUE(under_way);
  ASSERT_TRUE(publish_checkpoint(at_, written(at_, 6), 3));
  EXPECT_THAT(names_in(at_), ElementsAre(under_way->path().filename().string(), "checkpoint-6", "latest",
                                         "network.safetensors.124.partial"));
}

TEST_F(Checkpoints, TheSameStepIsReplaced) {
  const auto path = written(at_, 5);
  TrainerState state = state_at(5);
  state.loss = 7;
  ASSERT_TRUE(write_checkpoint(at_, state, tensors_of("w", kMoments), {}));
  EXPECT_EQ(open_checkpoint(path)->state.loss, 7);
  EXPECT_THAT(names_in(at_), ElementsAre("checkpoint-5"));
  ASSERT_TRUE(save_text(path / "notes.txt", "mine"));
  const auto refused = write_checkpoint(at_, state_at(5), {}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("checkpoint-5: holds files that are not mayfly's"));
  EXPECT_THAT(names_in(at_), ElementsAre("checkpoint-5"));
}

// A petabyte that is never looked at: the question comes before the first byte.
TEST_F(Checkpoints, SpaceIsAskedForFirst) {
  const std::byte byte{};
  const std::vector<TensorView> huge{{.name = "w", .dtype = "U8", .shape = {}, .bytes = {&byte, std::size_t{1} << 50}}};
  const auto refused = write_checkpoint(at_, state_at(1), huge, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(": a checkpoint needs 1125899906.9"));
  EXPECT_THAT(refused.error().message, HasSubstr(" MB are free"));
  EXPECT_TRUE(fs::is_empty(at_));
}

TEST_F(Checkpoints, AFailedWriteLeavesNothing) {
  const std::vector<TensorView> wrong{{.name = "w", .shape = {3}, .bytes = std::as_bytes(std::span(kWeights))}};
  EXPECT_FALSE(write_checkpoint(at_, state_at(1), tensors_of("w", kWeights), wrong));
  EXPECT_TRUE(fs::is_empty(at_));
  ASSERT_TRUE(save_text(at_ / "file", "x"));
  EXPECT_FALSE(write_checkpoint(at_ / "file" / "below", state_at(1), {}, {}));
}

}  // namespace
}  // namespace mayfly
