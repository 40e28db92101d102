#include "job/lasting.h"

#include <gtest/gtest.h>

namespace mayfly {
namespace {

std::map<std::string, std::string> terms(const std::string& text) {
  const auto read = lasting_terms(text, "job.yaml");
  EXPECT_TRUE(read) << read.error().message;
  return read.value_or(std::map<std::string, std::string>{});
}

const char* const kJob =
    "name: a\nobjective: {deadline: 1h, epochs: 3}\n"
    "train: {seed: 1, batch: 8, data: {name: count, samples: 10, loader: {cache_mb: 5}}, checkpoint: {every: 5s}}\n";

TEST(LastingTerms, AreThoseThatDecideWhatIsTrained) {
  const auto found = terms(kJob);
  EXPECT_EQ(found.at("train.seed"), "1");
  EXPECT_EQ(found.at("train.data.samples"), "10");
  EXPECT_FALSE(found.contains("train.data.loader.cache_mb"));
  EXPECT_FALSE(found.contains("train.checkpoint.every"));
  EXPECT_FALSE(found.contains("objective.deadline"));
  EXPECT_EQ(terms("run: python3 a.py\ntrain: {model: script}\n").at("run"), "python3 a.py");
}

TEST(LastingTerms, AreTheSameHoweverTheyAreWritten) {
  EXPECT_EQ(differences(terms("train:\n  batch: 8\n  seed: '1'\n"), terms("{\"train\": {\"seed\": 1, \"batch\": 8}}")),
            "");
}

TEST(LastingTerms, DifferencesAreNamed) {
  const auto before = terms("train: {seed: 1, batch: 8, shape: [1, 2]}");
  EXPECT_EQ(differences(before, terms("train: {seed: 2, batch: 8, shape: [1, 3], clip: 1}")),
            "train.clip: was not there, is 1; train.seed: was 1, is 2; train.shape[1]: was 2, is 3");
  EXPECT_EQ(differences(before, before), "");
}

}  // namespace
}  // namespace mayfly
