#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/result.h"

// What the fuzz targets share: each calls one parser and checks what must hold of its answer, whatever the input.
namespace mayfly::fuzz {

inline const std::string kFile = "fuzzed.file";

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// An error says something, and begins with the file's name. (Line ends and control characters of the input may be part
/// of it: they are made harmless where it is printed.)
inline void check_message(const Error& error) {
  require(!error.message.empty(), "an error has a message");
  require(error.message.starts_with(kFile + ":"), "a message begins with the file's name");
}

}  // namespace mayfly::fuzz
