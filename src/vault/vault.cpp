#include "vault/vault.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr Seconds kLongestSeekPause{60};

}  // namespace

Vault::Vault(Depot& depot, const Options& options, std::function<void(std::function<void()>)> post,
             std::function<void(const std::string&)> said)
    : depot_(depot), options_(options), post_(std::move(post)), said_(std::move(said)) {}

Vault::~Vault() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

bool Vault::wait(Seconds pause) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, pause, [this] { return closing_; });
  return !closing_;
}

void Vault::seek(const Lineage& lineage, std::function<void(const FoundCheckpoint&)> found) {
  thread_.add([this, lineage, found = std::move(found)] {
    for (Seconds pause = options_.first_pause;; pause = std::min(kLongestSeekPause, 2 * pause)) {
      auto newest = depot_.newest(lineage);
      if (newest) return post_([found, newest = *std::move(newest)] { found(newest); });
      std::string why = fmt::format("no checkpoint can be sought: {}; asked again in {}", newest.error().message,
                                    format_duration(pause));
      if (said_) post_([this, why = std::move(why)] { said_(why); });
      if (!wait(pause)) return;
    }
  });
}

void Vault::publish(std::string checkpoint, std::function<void(const Result<void>&)> done) {
  thread_.add([this, checkpoint = std::move(checkpoint), done = std::move(done)] {
    auto result = depot_.publish(checkpoint, options_.keep);
    post_([done, result = std::move(result)] { done(result); });
  });
}

}  // namespace mayfly
