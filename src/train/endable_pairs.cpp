#include "train/endable_pairs.h"

#include <stdexcept>
#include <vector>

namespace mayfly {
namespace {

using gloo::transport::UnboundBuffer;

class EndableBuffer final : public UnboundBuffer {
 public:
  EndableBuffer(std::unique_ptr<UnboundBuffer> inner, std::shared_ptr<OpenBuffers> open)
      : UnboundBuffer(inner->ptr, inner->size), inner_(std::move(inner)), open_(std::move(open)) {
    open_->add(*inner_);
  }
  ~EndableBuffer() override { open_->remove(*inner_); }
  EndableBuffer(const EndableBuffer&) = delete;
  EndableBuffer& operator=(const EndableBuffer&) = delete;

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    return completed(inner_->waitRecv(rank, timeout));
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    return completed(inner_->waitSend(rank, timeout));
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int peer, uint64_t slot, size_t offset, size_t bytes) override { inner_->send(peer, slot, offset, bytes); }
  void recv(int peer, uint64_t slot, size_t offset, size_t bytes) override { inner_->recv(peer, slot, offset, bytes); }
  void recv(std::vector<int> peers, uint64_t slot, size_t offset, size_t bytes) override {
    inner_->recv(std::move(peers), slot, offset, bytes);
  }

 private:
  /// gloo's algorithms do not ask what a wait returned.
  static bool completed(bool done) {
    if (!done) throw std::runtime_error("the formation is over");
    return true;
  }

  std::unique_ptr<UnboundBuffer> inner_;
  std::shared_ptr<OpenBuffers> open_;
};

void end_waits(UnboundBuffer& buffer) {
  buffer.abortWaitSend();
  buffer.abortWaitRecv();
}

}  // namespace

void OpenBuffers::end() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  for (UnboundBuffer* buffer : buffers_) end_waits(*buffer);
}

bool OpenBuffers::over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

void OpenBuffers::add(UnboundBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.insert(&buffer);
  if (over_) end_waits(buffer);
}

void OpenBuffers::remove(UnboundBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  buffers_.erase(&buffer);
}

std::unique_ptr<UnboundBuffer> EndablePairs::createUnboundBuffer(void* data, size_t bytes) {
  return std::make_unique<EndableBuffer>(inner_->createUnboundBuffer(data, bytes), open_);
}

}  // namespace mayfly
