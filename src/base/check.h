#pragma once

#include <cstdio>
#include <cstdlib>

/// A bug, not an error: prints where and what, then aborts. On in release builds too.
#define MAYFLY_CHECK(condition, message)                                                             \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      std::fprintf(stderr, "mayfly bug: %s:%d: %s (%s)\n", __FILE__, __LINE__, message, #condition); \
      std::abort();                                                                                  \
    }                                                                                                \
  } while (false)
