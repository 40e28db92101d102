#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/units.h"
#include "wire/loop.h"

namespace mayfly {

/// How a program of another's ended, and what it wrote.
struct ProgramEnd {
  bool late = false;  ///< killed, as it took longer than it may: whether it did what it should is not known
  int code = 0;       ///< as a shell has it: 127 where it cannot be started, 128 and more of a signal
  std::string output{};
  std::string error{};
  bool well() const { return !late && code == 0; }
  /// Why it did not end well, in one line.
  std::string why() const;
};

/// One run of another's program beside the loop, which it never holds up. Its standard streams are files in memory.
class Program {
 public:
  /// `words`: the program, looked for as a shell does, and its arguments. `then` is called from the loop, and may
  /// destroy this.
  Program(Loop& loop, std::vector<std::string> words, const std::string& input, Seconds patience,
          std::function<void(const ProgramEnd&)> then);
  /// One that has not ended goes on, and nothing is heard of it any more.
  ~Program();
  /// Blocks until it has ended, `patience` from now at the latest, and calls `then`.
  void wait(Seconds patience);

 private:
  void start(std::vector<std::string> words, const std::string& input);
  void expire();
  void end(bool late, int code);

  Loop& loop_;
  std::function<void(const ProgramEnd&)> then_;
  pid_t pid_ = 0;
  OpenFile output_;
  OpenFile error_;
  std::unique_ptr<DescriptorWatch> watch_{};
  Timer patience_;
  std::shared_ptr<int> here_ = std::make_shared<int>();  ///< what is posted may come when this is gone
};

}  // namespace mayfly
