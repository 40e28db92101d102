#include "engine/program.h"

#include <gtest/gtest.h>

#include <optional>

namespace mayfly {
namespace {

/// How it ends, by the loop.
ProgramEnd end_of(std::vector<std::string> words, const std::string& input = "", Seconds patience = Seconds(60)) {
  Loop loop;
  std::optional<ProgramEnd> found;
  const Program program(loop, std::move(words), input, patience, [&](const ProgramEnd& end) {
    found = end;
    loop.stop();
  });
  loop.run();
  return *found;
}

TEST(Program, WhatItWritesAndHowItEndsIsHeard) {
  const ProgramEnd end = end_of({"sh", "-c", "cat; echo no >&2; exit 3"}, "text\n");
  EXPECT_EQ(end.output, "text\n");
  EXPECT_EQ(end.error, "no\n");
  EXPECT_EQ(end.code, 3);
  EXPECT_FALSE(end.well());
  EXPECT_TRUE(end_of({"true"}).well());
}

TEST(Program, WhyIsItsLastLine) {
  EXPECT_EQ(end_of({"sh", "-c", "echo first >&2; echo last >&2; exit 1"}).why(), "last");
  EXPECT_EQ(end_of({"sh", "-c", "echo said; exit 1"}).why(), "said") << "where it complains on its output";
  EXPECT_EQ(end_of({"false"}).why(), "exit code 1");
}

TEST(Program, OneThatIsNotThereIsAnEndAsAnyOther) {
  const ProgramEnd end = end_of({"no-such-program-of-mayfly"});
  EXPECT_EQ(end.code, 127);
  EXPECT_EQ(end.why(), "no-such-program-of-mayfly cannot be started: No such file or directory");
}

TEST(Program, OneThatDoesNotEndIsKilledWithWhatItHasStarted) {
  const ProgramEnd end = end_of({"sh", "-c", "sleep 100000 & wait"}, "", Seconds(0.05));
  EXPECT_TRUE(end.late);
  EXPECT_EQ(end.why(), "no answer in time");
}

TEST(Program, ItCanBeWaitedForWithoutTheLoop) {
  Loop loop;
  int ends = 0;
  Program program(loop, {"sh", "-c", "echo said"}, "", Seconds(60), [&](const ProgramEnd& end) {
    EXPECT_EQ(end.output, "said\n");
    ++ends;
  });
  program.wait(Seconds(60));
  EXPECT_EQ(ends, 1);
}

}  // namespace
}  // namespace mayfly
