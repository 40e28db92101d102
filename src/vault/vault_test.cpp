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
  Vault vault(folder.path(), 1, [](const std::function<void()>& call) { call(); });
  vault.publish(second, [](const Result<void>& result) { EXPECT_TRUE(result) << result.error().message; });
  vault.seek({}, [&](const FoundCheckpoint& found) {
    answer.set_value(found.checkpoint ? std::optional(found.checkpoint->state.sample) : std::nullopt);
  });
  EXPECT_EQ(answer.get_future().get(), 16);
  EXPECT_FALSE(std::filesystem::exists(first)) << "one is kept";
}

TEST(Vault, EndsWithWhatItWasAskedForDone) {
  const support::TempFolder folder;
  const auto path = saved(folder.path(), 8);
  {
    Vault(folder.path(), 1, [](const auto&) {}).publish(path, {});
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "latest"));
}

}  // namespace
}  // namespace mayfly
