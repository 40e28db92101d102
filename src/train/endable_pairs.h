#pragma once

#include <gloo/transport/context.h>

#include <memory>
#include <mutex>
#include <set>

namespace mayfly {

/// Which of gloo's buffers a thread may wait in, and whether that is over. Safe from any thread.
class OpenBuffers {
 public:
  /// Ends the waiting in all of them, now and later.
  void end();
  bool over() const;
  void add(gloo::transport::UnboundBuffer& buffer);
  void remove(gloo::transport::UnboundBuffer& buffer);

 private:
  mutable std::mutex mutex_{};
  std::set<gloo::transport::UnboundBuffer*> buffers_{};
  bool over_ = false;
};

/// gloo's pairs with buffers in which all waiting can be ended. gloo's own ways leave some asleep: closeConnections()
/// wakes no thread that waits for data, and a send that gloo's thread takes up just as the connection ends is in no
/// list of those who are told. A wait that is ended throws.
class EndablePairs final : public gloo::transport::Context {
 public:
  EndablePairs(std::shared_ptr<gloo::transport::Context> pairs, std::shared_ptr<OpenBuffers> open)
      : Context(pairs->rank, pairs->size), inner_(std::move(pairs)), open_(std::move(open)) {}

  std::unique_ptr<gloo::transport::Pair>& getPair(int peer) override { return inner_->getPair(peer); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override { return inner_->createPair(peer); }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, size_t bytes) override;

 private:
  std::shared_ptr<gloo::transport::Context> inner_;
  std::shared_ptr<OpenBuffers> open_;
};

}  // namespace mayfly
