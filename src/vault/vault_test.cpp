#include "vault/vault.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "support/temp_folder.h"

namespace mayfly {
namespace {

std::filesystem::path saved(const std::filesystem::path& folder, std::int64_t sample) {
  const std::vector<float> values{1, 2};
  const std::vector<TensorView> tensors{{.name = "w", .shape = {2}, .bytes = std::as_bytes(std::span(values))}};
  const TrainerState state{.sample = sample, .step = sample / 8, .ledger = {{0, sample}}, .job = "count"};
  const auto path = write_checkpoint(folder, state, tensors, tensors);
  EXPECT_TRUE(path) << path.error().message;
  return path.value_or(std::filesystem::path());
}

// Answers come through `post`, in the order of the questions; here they are run at once, in the vault's thread.
TEST(Vault, FindsWhatWasPublishedBeforeTheQuestion) {
  const support::TempFolder folder;
  std::promise<std::optional<std::int64_t>> answer;
  const auto first = saved(folder.path(), 8);
  const auto second = saved(folder.path(), 16);
  const auto depot = open_depot(folder.path().string(), {}, {});
  ASSERT_TRUE(depot);
  Vault vault(**depot, {.keep = 1}, [](const std::function<void()>& call) { call(); });
  vault.publish(second.string(), [](const Result<void>& result) { EXPECT_TRUE(result) << result.error().message; });
  vault.seek({}, [&](const FoundCheckpoint& found) {
    answer.set_value(found.checkpoint ? std::optional(found.checkpoint->state.sample) : std::nullopt);
  });
  EXPECT_EQ(answer.get_future().get(), 16);
  EXPECT_FALSE(std::filesystem::exists(first)) << "one is kept";
}

/// Away for so many questions, then empty.
class AwayDepot : public Depot {
 public:
  explicit AwayDepot(int questions) : left_(questions) {}
  StoreResult<void> claim(const std::string&, Seconds) override { return {}; }
  Result<FoundCheckpoint> newest(const Lineage&) override {
    if (left_-- > 0) return fail("no connection");
    return FoundCheckpoint{};
  }
  Result<std::string> write(const TrainerState&, std::span<const TensorView>, std::span<const TensorView>) override {
    return fail("no connection");
  }
  Result<ReadCheckpoint> read(const std::string&) override { return fail("no connection"); }
  Result<void> publish(const std::string&, int) override { return fail("no connection"); }
  void tidy() override {}

 private:
  int left_;
};

TEST(Vault, AsksADepotThatIsAwayAgainAndSaysSo) {
  AwayDepot depot(2);
  std::promise<bool> answer;
  std::vector<std::string> said;
  Vault vault(
      depot, {.first_pause = Seconds(0.01)}, [](const std::function<void()>& call) { call(); },
      [&](const std::string& text) { said.push_back(text); });
  vault.seek({}, [&](const FoundCheckpoint& found) { answer.set_value(found.checkpoint.has_value()); });
  EXPECT_FALSE(answer.get_future().get());
  EXPECT_EQ(said.size(), 2U) << "nothing was found only once it could be told";
}

TEST(Vault, EndsThoughTheDepotStaysAway) {
  AwayDepot depot(1000);
  Vault vault(depot, {.first_pause = Seconds(60)}, [](const std::function<void()>& call) { call(); });
  vault.seek({}, [](const FoundCheckpoint&) { FAIL() << "it was away"; });
}

TEST(Vault, EndsWithWhatItWasAskedForDone) {
  const support::TempFolder folder;
  const auto path = saved(folder.path(), 8);
  {
    const auto depot = open_depot(folder.path().string(), {}, {});
    ASSERT_TRUE(depot);
    Vault(**depot, {.keep = 1}, [](const auto&) {}).publish(path.string(), {});
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "latest"));
}

}  // namespace
}  // namespace mayfly
