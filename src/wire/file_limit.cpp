#include "wire/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace mayfly {

std::int64_t raised_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit most{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &most) == 0) limit = most;
  constexpr rlim_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(limit.rlim_cur, kMost));
}

}  // namespace mayfly
