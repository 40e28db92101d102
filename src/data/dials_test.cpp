#include "data/dials.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <ctime>
#include <fstream>

#include "support/temp_folder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

class Dials : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Dataset>> opened(std::int64_t samples, double kb, double prep_ms = 0) const {
    return open_dials({.name = "dials", .files = {"d.bin"}, .samples = samples, .sample_kb = kb, .prep_ms = prep_ms},
                      folder_.path());
  }
  fs::path file() const { return folder_.path() / "d.bin"; }
  support::TempFolder folder_{};
};

Result<void> read_one(const Dataset& data, std::int64_t sample) {
  std::vector<float> inputs(data.length());
  std::vector<std::int64_t> labels(1);
  return data.read(std::vector{sample}, inputs, labels);
}

TEST_F(Dials, MakeTheirFileAndUseItAgain) {
  ASSERT_TRUE(opened(100, 2.5).has_value());
  EXPECT_EQ(fs::file_size(file()), 250'000u);
  const auto made = fs::last_write_time(file());
  const auto data = opened(100, 2.5);
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(fs::last_write_time(file()), made);
  std::vector<std::byte> raw;
  ASSERT_TRUE((*data)->fetch(99, raw));
  EXPECT_EQ(raw.size(), 2500u);
  for (std::int64_t i = 0; i < 100; ++i) EXPECT_TRUE(read_one(**data, i));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1) << "nothing is left";
}

TEST_F(Dials, RefuseAFileOfOtherSamples) {
  ASSERT_TRUE(opened(100, 1).has_value());
  EXPECT_EQ(opened(50, 1).error().message, file().string() +
                                               ": 100000 bytes, want 50000 for 50 samples of 1000 bytes; without it, "
                                               "it is made anew");
  const auto data = opened(50, 2);
  ASSERT_TRUE(data.has_value()) << "the size fits, the samples do not";
  EXPECT_TRUE(read_one(**data, 0));
  EXPECT_EQ(read_one(**data, 7).error().message,
            file().string() + ": where sample 7 should be, 14 is: not made for this data");
  EXPECT_EQ(opened(50, .01).error().message, file().string() + ": samples of 0.01 kB, want at least 0.016");
}

TEST_F(Dials, NoticeAFileThatShrinksUnderWay) {
  const auto data = opened(100, 1);
  ASSERT_TRUE(data.has_value());
  fs::resize_file(file(), 50'500);
  EXPECT_TRUE(read_one(**data, 49));
  EXPECT_EQ(read_one(**data, 50).error().message,
            file().string() + ": nothing at byte 50500, had 100000 bytes when it was opened");
}

/// Files of this process may not become larger than this, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(Dials, LeaveNothingBehindWhereTheFileCannotBeMade) {
  {
    const FileSizeLimit limit(10'000);
    EXPECT_EQ(opened(100, 1).error().message, file().string() + ": cannot be made: File too large");
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
  const auto full = open_dials({.name = "dials", .files = {"/dev/full/x"}, .samples = 10}, folder_.path());
  EXPECT_EQ(full.error().message, "/dev/full/x: cannot be made: Not a directory");
  EXPECT_TRUE(opened(100, 1).has_value());
}

double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

TEST_F(Dials, TakeTheProcessorsTimeThatTheyAreSetTo) {
  const auto data = opened(4, 1, 10);
  ASSERT_TRUE(data.has_value());
  const double start = thread_seconds();
  for (std::int64_t i = 0; i < 4; ++i) ASSERT_TRUE(read_one(**data, i));
  EXPECT_GE(thread_seconds() - start, .04);
}

}  // namespace
}  // namespace mayfly
