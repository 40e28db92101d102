#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mayfly {

// Messages of carriers: connections of machines that share no files with the controller's computer, over which the
// files that a job names come to them, and checkpoints go and come. docs/protocol.md#files

/// Pieces of files travel as bytes behind the message's JSON, with a zero byte between the two.
inline constexpr std::int64_t kLongestPiece = 1 << 20;

/// From a carrier: which files are there?
struct Browse {
  bool operator==(const Browse&) const = default;
};
/// From a carrier: `count` bytes of a file, or as many as there are.
struct Fetch {
  std::string name{};
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool operator==(const Fetch&) const = default;
};
/// From a carrier: a piece of a file of the checkpoint that it brings. Pieces of a file come in order.
struct Bring {
  std::string checkpoint{};  ///< "checkpoint-660"
  std::string file{};        ///< "model.safetensors"
  std::int64_t offset = 0;
  std::string bytes{};
  bool operator==(const Bring&) const = default;
};
/// From a carrier: all of that checkpoint has been brought.
struct Keep {
  std::string checkpoint{};
  bool operator==(const Keep&) const = default;
};

/// To a carrier: the files that the job names.
struct Shelved {
  std::vector<std::string> names{};   ///< below the folder of the job: "job/data.bin"
  std::vector<std::int64_t> sizes{};  ///< in bytes
  std::vector<std::string> hashes{};  ///< 64 bits of XXH3 of the content, in hexadecimal
  std::vector<bool> programs{};       ///< may be executed
  bool operator==(const Shelved&) const = default;
};
/// To a carrier: fewer bytes than it asked for are the end of the file.
struct Piece {
  std::int64_t offset = 0;
  std::string bytes{};
  bool operator==(const Piece&) const = default;
};
/// To a carrier: the piece is taken.
struct Taken {
  bool operator==(const Taken&) const = default;
};
/// To a carrier: the checkpoint is whole, and lies there.
struct Kept {
  std::string path{};
  bool operator==(const Kept&) const = default;
};
/// To a carrier: why it cannot be done.
struct Undone {
  std::string why{};
  bool operator==(const Undone&) const = default;
};

}  // namespace mayfly
