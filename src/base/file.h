#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mayfly {

/// A descriptor, closed with it.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  ~OpenFile();
  int descriptor() const { return descriptor_; }
  /// The descriptor is the caller's from now on.
  int release();

 private:
  int descriptor_;
};

/// A regular file that lies there itself, opened with the flags of open(2), and made with this mode where they say so.
/// In a folder that others write to, a link may lead anywhere and a pipe or a device may never answer: those are
/// refused, and nobody is waited for.
Result<OpenFile> open_own_file(const std::filesystem::path& path, int flags, unsigned mode = 0600);

/// The bytes of a file that the user has named, which may be a pipe. Refuses folders, missing files and more than
/// 512 MB.
Result<std::string> load_text(const std::filesystem::path& path);
/// All that is left of an open file; `name` is for messages.
Result<std::string> load_text(const OpenFile& file, const std::filesystem::path& name);

/// Writes beside the target and renames, so a reader or a crash never sees half a file.
Result<void> save_text(const std::filesystem::path& path, std::string_view text);

}  // namespace mayfly
