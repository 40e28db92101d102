#include "notice/watch.h"

#include <algorithm>
#include <utility>

namespace mayfly {
namespace {

/// A service that is not there is asked less and less often.
constexpr Seconds kLongestPause{30};

}  // namespace

NoticeWatch::NoticeWatch(const Options& options, Calls calls)
    : interval_(options.interval.value_or(MetadataClient::interval(options.service.cloud))),
      calls_(std::move(calls)),
      client_(options.service) {
  if (options.service.cloud != Cloud::none) thread_ = std::thread([this] { watch(); });
}

NoticeWatch::~NoticeWatch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  client_.stop();
  if (thread_.joinable()) thread_.join();
}

void NoticeWatch::watch() {
  while (!ask()) {
    const Seconds wait = failures_ == 0
                             ? interval_
                             : std::min(interval_ * (1 << std::min(failures_, 10)), std::max(interval_, kLongestPause));
    if (pause(wait)) return;
  }
}

bool NoticeWatch::ask() {
  const auto notice = client_.ask();
  if (!notice) {
    if (failures_++ == 0) calls_.trouble(notice.error().message);
    return false;
  }
  failures_ = 0;
  if (!*notice) return false;
  const bool ends = (*notice)->left.has_value();
  if (ends || !std::exchange(warned_, true)) calls_.notice(**notice);
  return ends;
}

bool NoticeWatch::pause(Seconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return over_; });
}

}  // namespace mayfly
