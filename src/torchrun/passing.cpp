#include "torchrun/passing.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace mayfly {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::size_t kLongestLine = 20'000;
constexpr int kRestMs = 5;

void close_if_open(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

/// False where no process reads any more.
bool write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(to, text.data(), text.size());
    if (count < 0 && errno != EINTR && errno != EAGAIN) return false;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

PassingOutput::PassingOutput(int to, std::function<void(std::string_view)> line) : to_(to), line_(std::move(line)) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0 || ::pipe2(stop_, O_CLOEXEC) != 0) return;
  reader_ = ends[0];
  writer_ = ends[1];
  ::fcntl(reader_, F_SETFL, O_NONBLOCK);
}

PassingOutput::~PassingOutput() {
  finish();
  for (int* descriptor : {&reader_, &writer_, &stop_[0], &stop_[1]}) close_if_open(*descriptor);
}

void PassingOutput::start() {
  close_if_open(writer_);
  thread_ = std::thread([this] { pass(); });
}

void PassingOutput::finish() {
  close_if_open(stop_[1]);
  if (thread_.joinable()) thread_.join();
}

void PassingOutput::pass() {
  std::vector<char> chunk(kChunk);
  bool heard = true;
  for (bool ending = false;;) {
    pollfd waits[2] = {{reader_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
    if (!ending && ::poll(waits, 2, -1) < 0 && errno != EINTR) return;
    ending = ending || waits[1].revents != 0;
    const ssize_t count = ::read(reader_, chunk.data(), chunk.size());
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (count < 0 && ending) return;
    if (count <= 0) continue;
    const std::string_view text(chunk.data(), static_cast<std::size_t>(count));
    // The script's pipe must not fill because ours is broken.
    heard = heard && write_all(to_, text);
    tell(text);
    // A script that prints every step would pay for waking this thread each time.
    if (!ending) ::poll(&waits[1], 1, kRestMs);
  }
}

void PassingOutput::tell(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find_first_of("\n\r");
    if (begun_.size() < kLongestLine) begun_ += text.substr(0, end);
    if (end == std::string_view::npos) return;
    if (!begun_.empty()) line_(begun_);
    begun_.clear();
    text.remove_prefix(end + 1);
  }
}

}  // namespace mayfly
