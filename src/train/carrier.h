#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "data/new_file.h"
#include "wire/loop.h"

namespace mayfly {

/// Fetches and brings files over the run's own connection, for a machine that shares none with the controller's
/// computer. Its calls block and come from one thread; a connection that breaks is made again, and the file in hand is
/// gone on with, until the controller has not answered for `patience`.
class Carrier {
 public:
  struct Options {
    std::string host{};
    std::uint16_t port = 0;
    Credentials credentials{};
    Seconds patience{10};
  };
  explicit Carrier(Options options);
  ~Carrier();
  Carrier(const Carrier&) = delete;

  Result<Shelved> browse();
  /// The whole file, or as much of it as was there when it was so large; it appears under its name when all is there.
  Result<FileSeal> fetch(const std::string& name, const std::filesystem::path& to,
                         std::optional<std::int64_t> size = {});
  /// A whole checkpoint of this machine; where it lies on the controller's computer.
  Result<std::string> bring(const std::filesystem::path& checkpoint);

 private:
  Result<ToCarrier> ask(const FromCarrier& message);
  std::optional<ToCarrier> ask_once(const FromCarrier& message, std::string& why);
  bool connected(std::string& why);
  Result<void> bring_file(const std::string& checkpoint, const std::filesystem::path& file);

  const Options options_;
  Loop loop_{};
  std::unique_ptr<Link> link_{};
  std::optional<ToCarrier> answer_{};
  std::string closed_{};  ///< why the link has ended
  bool lost_ = false;     ///< nobody has answered for as long as patience lasts
};

}  // namespace mayfly
