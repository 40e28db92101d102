#include "wire/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace mayfly {
namespace {

std::vector<std::string> all_frames(FrameReader& reader) {
  std::vector<std::string> frames;
  while (true) {
    auto frame = reader.next();
    EXPECT_TRUE(frame);
    if (!frame || !*frame) return frames;
    frames.push_back(**frame);
  }
}

TEST(Frame, LengthComesFirstAndLeastByteFirst) {
  EXPECT_EQ(framed("abc"), std::string("\3\0\0\0abc", 7));
  EXPECT_EQ(framed(std::string(258, 'x')).substr(0, 4), std::string("\2\1\0\0", 4));
}

TEST(Frame, SplitAtEveryByteTheyComeOutWhole) {
  const std::vector<std::string> texts = {"first", "", std::string(300, 'y')};
  std::string stream;
  for (const auto& text : texts) stream += framed(text);
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader reader;
    reader.take(stream.substr(0, cut));
    auto frames = all_frames(reader);
    reader.take(stream.substr(cut));
    for (auto& frame : all_frames(reader)) frames.push_back(frame);
    EXPECT_EQ(frames, texts) << "cut at " << cut;
  }
}

TEST(Frame, OneByteAtATimeIsEnough) {
  FrameReader reader;
  std::vector<std::string> frames;
  for (const char byte : framed("slow") + framed("peer")) {
    reader.take({&byte, 1});
    for (auto& frame : all_frames(reader)) frames.push_back(frame);
  }
  EXPECT_EQ(frames, (std::vector<std::string>{"slow", "peer"}));
}

TEST(Frame, ALengthNoPeerWouldSendIsAnErrorAtOnce) {
  FrameReader reader;
  reader.take(std::string("\1\0\0\1", 4));  // 16 MiB and one
  const auto frame = reader.next();
  ASSERT_FALSE(frame);
  EXPECT_NE(frame.error().message.find("16777217"), std::string::npos);
}

TEST(Frame, TheLongestIsAllowed) {
  FrameReader reader;
  reader.take(framed(std::string(kLongestFrame, 'z')));
  const auto frame = reader.next();
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ((*frame)->size(), kLongestFrame);
}

}  // namespace
}  // namespace mayfly
