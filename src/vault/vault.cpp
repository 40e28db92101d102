#include "vault/vault.h"

#include <utility>

namespace mayfly {

Vault::Vault(std::filesystem::path folder, int keep, std::function<void(std::function<void()>)> post)
    : folder_(std::move(folder)), keep_(keep), post_(std::move(post)), thread_([this] { work(); }) {}

Vault::~Vault() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Vault::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void Vault::work() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

void Vault::seek(const Lineage& lineage, std::function<void(const FoundCheckpoint&)> found) {
  add([this, lineage, found = std::move(found)] {
    auto newest = newest_checkpoint(folder_, lineage);
    post_([found, newest = std::move(newest)] { found(newest); });
  });
}

void Vault::publish(std::filesystem::path checkpoint, std::function<void(const Result<void>&)> done) {
  add([this, checkpoint = std::move(checkpoint), done = std::move(done)] {
    auto result = publish_checkpoint(folder_, checkpoint, keep_);
    post_([done, result = std::move(result)] { done(result); });
  });
}

}  // namespace mayfly
