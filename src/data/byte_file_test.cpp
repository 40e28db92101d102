#include "data/byte_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "base/file.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

class ByteFiles : public ::testing::Test {
 protected:
  fs::path written(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(save_text(folder_.path() / name, bytes));
    return folder_.path() / name;
  }
  support::TempFolder folder_{};
};

TEST_F(ByteFiles, AreReadFromAnywhere) {
  const auto file = ByteFile::open(written("f", "abcdef"));
  ASSERT_TRUE(file.has_value());
  EXPECT_FALSE(file->in_memory());
  EXPECT_EQ(file->size(), 6u);
  EXPECT_EQ(file->text(2, 3), "cde");
  EXPECT_EQ(file->text(4, 100), "ef") << "up to the end";
  std::array<std::byte, 3> room{};
  EXPECT_EQ(file->read(4, room).error().message, file->name() + ": 6 bytes, want 3 from byte 4 on");
  EXPECT_FALSE(file->read(~std::uint64_t{0}, room));
}

TEST_F(ByteFiles, ThatBecomeShorterAreAnError) {
  const auto path = written("f", std::string(10'000, 'x'));
  const auto file = ByteFile::open(path);
  ASSERT_TRUE(file.has_value());
  fs::resize_file(path, 4000);
  EXPECT_EQ(file->text(5000, 10).error().message,
            path.string() + ": nothing at byte 5000, had 10000 bytes when it was opened");
  EXPECT_EQ(file->text(3990, 20).error().message,
            path.string() + ": nothing at byte 4000, had 10000 bytes when it was opened");
  EXPECT_EQ(file->text(3990, 10), std::string(10, 'x'));
}

// What was opened stays, as everywhere in Unix.
TEST_F(ByteFiles, ThatAreRemovedCanStillBeRead) {
  const auto path = written("f", "abc");
  const auto file = ByteFile::open(path);
  ASSERT_TRUE(file.has_value());
  fs::remove(path);
  EXPECT_EQ(file->text(0, 3), "abc");
}

TEST_F(ByteFiles, ThatCannotBeReadAreNamed) {
  const auto message = [](const fs::path& path) { return ByteFile::open(path).error().message; };
  EXPECT_EQ(message(folder_.path() / "absent"), (folder_.path() / "absent").string() + ": no such file");
  EXPECT_EQ(message(folder_.path()), folder_.path().string() + ": is a folder, want a file");
  const auto pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message(pipe), pipe.string() + ": is not a regular file") << "and nobody waits for a writer";
  // The kernel's own file with nothing at address 0 stands for a disk that fails.
  EXPECT_EQ(message("/proc/self/mem"), "/proc/self/mem: cannot read at byte 0: Input/output error");
}

TEST_F(ByteFiles, AreReadWholeWhereTheyAreSmall) {
  std::vector<std::byte> bytes;
  ASSERT_TRUE(read_whole(written("f", "abc"), 3, bytes));
  EXPECT_EQ(bytes.size(), 3u);
  EXPECT_EQ(read_whole(folder_.path() / "f", 2, bytes).error().message,
            (folder_.path() / "f").string() + ": 3 bytes, want at most 2");
}

}  // namespace
}  // namespace mayfly
