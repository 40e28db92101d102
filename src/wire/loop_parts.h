#pragma once

#define ASIO_STANDALONE
#include <array>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include "wire/loop.h"

namespace mayfly {

struct Loop::Parts {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
  /// What a link has just read; one for all, so that a thousand of them need no more memory than a few.
  std::array<char, 1 << 16> incoming{};
};

}  // namespace mayfly
