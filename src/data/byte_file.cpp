#include "data/byte_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "data/gzip.h"

namespace mayfly {
namespace {

/// As many bytes as there are, up to the size of `out`.
Result<std::size_t> bytes_read(int descriptor, const std::string& name, std::uint64_t offset,
                               std::span<std::byte> out) {
  std::size_t got = 0;
  while (got < out.size()) {
    const auto count = ::pread(descriptor, out.data() + got, out.size() - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail("{}: cannot read at byte {}: {}", name, offset + got, std::strerror(errno));
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int released() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// Does not wait for a process to write into what turns out to be a pipe.
Result<std::uint64_t> size_of(const Descriptor& file, const std::string& name) {
  if (file.number() < 0 && errno == ENOENT) return fail("{}: no such file", name);
  if (file.number() < 0) return fail("{}: cannot read: {}", name, std::strerror(errno));
  struct stat status{};
  if (::fstat(file.number(), &status) != 0) return fail("{}: cannot read: {}", name, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return fail("{}: is a folder, want a file", name);
  if (!S_ISREG(status.st_mode)) return fail("{}: is not a regular file", name);
  return static_cast<std::uint64_t>(status.st_size);
}

int opened(const std::string& name) { return ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

}  // namespace

Result<ByteFile> ByteFile::open(const std::filesystem::path& path) {
  ByteFile file;
  file.name_ = path.string();
  Descriptor descriptor(opened(file.name_));
  const auto size = size_of(descriptor, file.name_);
  if (!size) return unexpected(size.error());
  std::array<std::byte, 2> start{};
  const auto got = bytes_read(descriptor.number(), file.name_, 0, start);
  if (!got) return unexpected(got.error());
  if (start == std::array{std::byte{0x1f}, std::byte{0x8b}}) {
    auto bytes = load_unpacked(path);
    if (!bytes) return unexpected(bytes.error());
    return ByteFile(std::move(*bytes), path.string());
  }
  file.size_ = *size;
  file.descriptor_ = descriptor.released();
  return file;
}

ByteFile::ByteFile(std::string bytes, std::string name)
    : name_(std::move(name)), bytes_(std::move(bytes)), size_(bytes_.size()) {}

ByteFile::~ByteFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ByteFile::ByteFile(ByteFile&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(std::move(other.bytes_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)) {}

ByteFile& ByteFile::operator=(ByteFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

Result<void> ByteFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset)
    return fail("{}: {} bytes, want {} from byte {} on", name_, size_, out.size(), offset);
  if (in_memory()) {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  const auto got = bytes_read(descriptor_, name_, offset, out);
  if (!got) return unexpected(got.error());
  if (*got < out.size())
    return fail("{}: nothing at byte {}, had {} bytes when it was opened", name_, offset + *got, size_);
  return {};
}

Result<std::string> ByteFile::text(std::uint64_t offset, std::size_t size) const {
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - std::min(offset, size_))), '\0');
  if (auto done = read(offset, std::as_writable_bytes(std::span(text))); !done) return unexpected(done.error());
  return text;
}

Result<void> read_whole(const std::filesystem::path& path, std::size_t most, std::vector<std::byte>& out) {
  const auto name = path.string();
  const Descriptor descriptor(opened(name));
  const auto size = size_of(descriptor, name);
  if (!size) return unexpected(size.error());
  if (*size > most) return fail("{}: {} bytes, want at most {}", name, *size, most);
  out.resize(static_cast<std::size_t>(*size));
  const auto got = bytes_read(descriptor.number(), name, 0, out);
  if (!got) return unexpected(got.error());
  if (*got < out.size()) return fail("{}: nothing at byte {}, had {} bytes when it was opened", name, *got, *size);
  return {};
}

}  // namespace mayfly
