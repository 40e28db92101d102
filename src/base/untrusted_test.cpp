#include "base/untrusted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(ParsedJson, TakesWhatIsNestedAHundredLevelsDeepAndNoDeeper) {
  EXPECT_TRUE(parsed_json(nested(100)).is_array());
  EXPECT_TRUE(parsed_json(nested(101)).is_discarded());
  EXPECT_TRUE(parsed_json(nested(2'000'000)).is_discarded());
  EXPECT_TRUE(parsed_json(std::string(2'000'000, '{')).is_discarded());
}

TEST(ParsedJson, BracketsInTextAreText) {
  const std::string brackets(500, '[');
  EXPECT_EQ(parsed_json("\"" + brackets + "\""), Json(brackets));
  EXPECT_EQ(parsed_json("[\"\\\"" + brackets + "\"]")[0], Json("\"" + brackets));
  EXPECT_TRUE(parsed_json("not JSON").is_discarded());
}

TEST(OwnText, IsThatOfARegularFileAlone) {
  const support::TempFolder folder;
  std::ofstream(folder.path() / "file") << "text";
  std::filesystem::create_symlink(folder.path() / "file", folder.path() / "link");
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(load_own_text(folder.path() / "file").value_or(""), "text");
  for (const char* name : {"link", "pipe", "nothing"}) EXPECT_FALSE(load_own_text(folder.path() / name)) << name;
  EXPECT_FALSE(load_own_text(folder.path()));
}

TEST(OwnFile, IsOpenedAndMadeWithoutWaitingForAnybody) {
  const support::TempFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder.path() / "elsewhere", folder.path() / "link");
  for (const int flags : {O_RDONLY, O_WRONLY | O_CREAT, O_RDWR | O_CREAT})
    for (const char* name : {"pipe", "link", "."}) EXPECT_FALSE(open_own_file(folder.path() / name, flags)) << name;
  EXPECT_FALSE(open_own_file("/dev/zero", O_RDONLY));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "elsewhere"));
  EXPECT_TRUE(open_own_file(folder.path() / "new", O_RDWR | O_CREAT));
  EXPECT_EQ(std::filesystem::status(folder.path() / "new").permissions(), std::filesystem::perms{0600});
}

TEST(Secret, IsThisUsersAndNobodyElseReadsIt) {
  const support::TempFolder folder;
  const auto path = folder.path() / "token";
  std::ofstream(path) << "secret";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(load_secret(path).value_or(""), "secret");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(load_secret(path).error().message, path.string() + ": mode 640, want 600: others may read or change it");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  std::filesystem::create_symlink(path, folder.path() / "link");
  EXPECT_FALSE(load_secret(folder.path() / "link"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(load_secret(path).error().message, path.string() + ": belongs to user 12345, want 0");
}

TEST(OwnFolder, HoldsNothingThatOthersPutThere) {
  const support::TempFolder folder;
  const auto& here = folder.path();
  std::ofstream(here / "file") << "text";
  std::filesystem::create_directory(here / "checkpoints");
  std::filesystem::create_directory_symlink(here / "checkpoints", here / "latest");
  EXPECT_TRUE(check_own_folder(here));
  ASSERT_EQ(::mkfifo((here / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(check_own_folder(here));
  std::filesystem::remove(here / "pipe");
  for (const char* target : {"file", "nowhere"}) {
    std::filesystem::create_symlink(here / target, here / "link");
    EXPECT_EQ(check_own_folder(here).error().message,
              (here / "link").string() + ": a link, want a regular file or a folder");
    std::filesystem::remove(here / "link");
  }
  EXPECT_FALSE(check_own_folder(here / "missing"));
}

TEST(OwnFolder, IsThisUsersAndSoIsAllInIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const support::TempFolder folder;
  std::ofstream(folder.path() / "file") << "text";
  ASSERT_EQ(::chown((folder.path() / "file").c_str(), 12345, 12345), 0);
  EXPECT_FALSE(check_own_folder(folder.path()));
  ASSERT_EQ(::chown((folder.path() / "file").c_str(), 0, 0), 0);
  EXPECT_TRUE(check_own_folder(folder.path()));
  ASSERT_EQ(::chown(folder.path().c_str(), 12345, 12345), 0);
  EXPECT_FALSE(check_own_folder(folder.path()));
}

}  // namespace
}  // namespace mayfly
