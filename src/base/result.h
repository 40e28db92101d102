#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace mayfly {

/// Why something at an edge failed. The message names the thing, the value seen and the value wanted.
struct Error {
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

using tl::unexpected;

template <class... Args>
tl::unexpected<Error> fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace mayfly
