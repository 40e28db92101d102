#include "engine/local_engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

/// What a machine that runs this text of a shell has written when it is gone.
std::string output_of(const std::string& text) {
  const support::TempFolder folder;
  Loop loop;
  LocalEngine engine(loop,
                     {.run = folder.path().filename().string(),
                      .script = ScriptCommand{.text = text, .directory = folder.path()},
                      .logs = folder.path()},
                     {.seen = [&](const Sighting& sight) {
                       if (sight.stage == Sighting::Stage::gone) loop.stop();
                     }});
  const Order order{.launch = 0};
  engine.order({&order, 1});
  loop.run();
  return load_text(engine.log(0)).value_or("");
}

// A lock is of an open file: a machine that had it too would hold it for longer than its controller lives.
TEST(LocalEngine, AMachineHasNoOpenFileOfItsController) {
  const support::TempFolder folder;
  const auto path = folder.path() / "lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  const std::string files = output_of("for file in /proc/$$/fd/*; do readlink $file; done; echo listed");
  ::close(file);
  EXPECT_NE(files.find("listed"), std::string::npos) << files;
  EXPECT_EQ(files.find(path.string()), std::string::npos) << files;
}

}  // namespace
}  // namespace mayfly
