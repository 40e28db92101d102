#include "vault/checkpoint_key.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

TEST(CheckpointKey, IsOfAFileOfACheckpointAtThisPlace) {
  const StoreUrl url{"bucket", "a/b"};
  const auto key = parse_checkpoint_key(url, "a/b/checkpoint-93-0123abcd/model.safetensors");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->checkpoint, (StoredName{93, "checkpoint-93-0123abcd"}));
  EXPECT_EQ(key->file, "model.safetensors");
  EXPECT_TRUE(parse_checkpoint_key({"bucket", ""}, "checkpoint-0-0123abcd/trainer_state.json"));
}

TEST(CheckpointKey, IsNothingElse) {
  for (const auto* key :
       {"a/b/latest", "a/b/.run", "a/b/checkpoint-93/model.safetensors", "a/c/checkpoint-93-0123abcd/model.safetensors",
        "a/b/checkpoint-93-0123abcd/other", "a/b/checkpoint-93-0123abcd",
        "a/b/checkpoint-093-0123abcd/model.safetensors", "a/b/checkpoint--1-0123abcd/model.safetensors",
        "a/b/checkpoint-93-0123ABCD/model.safetensors", "a/b/x-93-0123abcd/model.safetensors",
        "a/b/checkpoint-93-0123abcd/x/model.safetensors",
        "a/b/checkpoint-99999999999999999999-0123abcd/model.safetensors"})
    EXPECT_FALSE(parse_checkpoint_key({"bucket", "a/b"}, key)) << key;
}

TEST(CheckpointKey, ANewNameIsOneOfItsOwn) {
  const auto first = new_stored_name(7);
  EXPECT_EQ(parse_stored_name(first.name), first);
  EXPECT_NE(first.name, new_stored_name(7).name);
}

}  // namespace
}  // namespace mayfly
