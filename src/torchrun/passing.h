#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace mayfly {

/// Passes on what is written into a pipe, at once and as it is, and tells each line. A thread of its own.
class PassingOutput {
 public:
  /// `to`: where it goes. `line` is called from the thread.
  PassingOutput(int to, std::function<void(std::string_view)> line);
  ~PassingOutput();
  PassingOutput(const PassingOutput&) = delete;

  /// The end to write into; give() it to a process, then let go of it here.
  int writer() const { return writer_; }
  void start();
  /// What is in the pipe is passed on; a process that still holds its other end is not waited for.
  void finish();

 private:
  void pass();
  void tell(std::string_view text);

  int to_;
  std::function<void(std::string_view)> line_;
  int reader_ = -1;
  int writer_ = -1;
  int stop_[2] = {-1, -1};
  std::string begun_{};  ///< a line without its end yet
  std::thread thread_{};
};

}  // namespace mayfly
