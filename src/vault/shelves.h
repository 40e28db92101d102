#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/checkpoint_folder.h"
#include "data/new_file.h"
#include "vault/task_thread.h"
#include "wire/message.h"

namespace mayfly {

/// What the job names and machines may fetch: a file, or a folder with all that is in it.
struct ShelfRoot {
  std::string name{};  ///< below which machines know it: "job/data"
  std::filesystem::path path{};
  bool operator==(const ShelfRoot&) const = default;
};

/// The files of a run, for machines that share none with this computer: they fetch what the job names, and checkpoints
/// come and go. Works in a thread of its own; a checkpoint that is brought appears when all of it is there.
class Shelves {
 public:
  using Answer = std::function<void(const ToCarrier&)>;
  /// `checkpoints`: their folder; empty: they are elsewhere. `post`: as a Vault's.
  Shelves(std::vector<ShelfRoot> roots, std::filesystem::path checkpoints,
          std::function<void(std::function<void()>)> post);
  void ask(FromCarrier message, Answer answer);

  /// Left out of folders: what is hidden, caches of Python, and runs.
  static constexpr std::size_t kMostFiles = 20'000;

 private:
  /// A file that is on the shelf, as it was when it was looked at.
  struct Entry {
    std::filesystem::path path{};
    std::filesystem::file_time_type changed{};
    FileSeal seal{};
    bool program = false;
  };
  /// A checkpoint that is being brought.
  struct Incoming {
    WorkFolder folder;
    std::map<std::string, NewFile> files{};
    std::map<std::string, std::int64_t> sizes{};
  };
  Result<ToCarrier> answer(const Browse& message);
  Result<ToCarrier> answer(const Fetch& message);
  Result<ToCarrier> answer(const Bring& message);
  Result<ToCarrier> answer(const Keep& message);
  Result<void> add(const std::string& name, const std::filesystem::path& path);
  Result<void> add_file(const std::string& name, const std::filesystem::path& path);
  Result<std::filesystem::path> path_of(const std::string& name) const;
  Result<Incoming*> incoming(const std::string& checkpoint);

  const std::vector<ShelfRoot> roots_;
  const std::filesystem::path checkpoints_;
  const std::function<void(std::function<void()>)> post_;
  // Of the thread:
  std::map<std::string, Entry> entries_{};  ///< by name
  std::map<std::string, Entry> before_{};   ///< at the look before: what has not changed is not hashed again
  std::map<std::string, Incoming> incoming_{};
  TaskThread thread_{};  ///< last: it ends first
};

/// A checkpoint of the run's own folder, as carriers name its files: "checkpoints/checkpoint-660/model.safetensors".
inline constexpr std::string_view kShelvedCheckpoints = "checkpoints/";

}  // namespace mayfly
