#include "data/dials.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "data/byte_file.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

constexpr int kInputs = 16;
constexpr int kClasses = 10;

Seconds processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec));
}

/// Its number, then noise that depends on it alone.
void fill_sample(std::int64_t sample, std::vector<std::byte>& bytes) {
  Rng rng(static_cast<std::uint64_t>(sample));
  std::memcpy(bytes.data(), &sample, sizeof sample);
  for (std::size_t at = sizeof sample; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const auto bits = rng.bits();
    std::memcpy(bytes.data() + at, &bits, std::min(sizeof bits, bytes.size() - at));
  }
}

class DialsDataset final : public Dataset {
 public:
  DialsDataset(ByteFile file, const DataSpec& spec, std::size_t bytes)
      : file_(std::move(file)), samples_(spec.samples), bytes_(bytes), prep_(spec.prep_ms / 1000) {}
  std::int64_t size() const override { return samples_; }
  std::vector<int> shape() const override { return {kInputs}; }
  int labels() const override { return 1; }
  int classes() const override { return kClasses; }
  bool in_files() const override { return true; }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    raw.resize(bytes_);
    return file_.read(static_cast<std::uint64_t>(sample) * bytes_, raw);
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    std::int64_t seen = -1;
    std::memcpy(&seen, raw.data(), sizeof seen);
    if (seen != sample)
      return fail("{}: where sample {} should be, {} is: not made for this data", file_.name(), sample, seen);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(raw[i]) / 127.5f - 1;
    labels[0] = sample % kClasses;
    burn(prep_);
    return {};
  }

 private:
  ByteFile file_;
  std::int64_t samples_;
  std::size_t bytes_;
  Seconds prep_;
};

/// A file that is there under its own name only once it is whole.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& path)
      : path_(path),
        partial_(path.string() + fmt::format(".{}.partial", ::getpid())),
        descriptor_(::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}
  ~Unfinished() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(partial_.c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  Result<void> reserve(std::uint64_t bytes) {
    if (descriptor_ < 0) return failed(errno);
    const int error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
    if (error != 0) return failed(error);
    return {};
  }
  Result<void> write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed(errno);
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }
  Result<void> finish() {
    if (::rename(partial_.c_str(), path_.c_str()) != 0) return failed(errno);
    return {};
  }

 private:
  tl::unexpected<Error> failed(int error) const {
    return fail("{}: cannot be made: {}", path_.string(), std::strerror(error));
  }
  fs::path path_;
  std::string partial_;
  int descriptor_;
};

Result<void> make_file(const fs::path& path, std::int64_t samples, std::size_t bytes) {
  Unfinished file(path);
  if (auto reserved = file.reserve(static_cast<std::uint64_t>(samples) * bytes); !reserved) return reserved;
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  std::vector<std::byte> one(bytes), many;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    fill_sample(sample, one);
    many.insert(many.end(), one.begin(), one.end());
    if (many.size() < kAtOnce && sample + 1 < samples) continue;
    if (auto written = file.write(many); !written) return written;
    many.clear();
  }
  return file.finish();
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_dials(const DataSpec& spec, const fs::path& folder) {
  constexpr double kMost = 1e12;
  const auto path = folder / spec.files[0];
  const double wanted = std::round(spec.sample_kb * 1000);
  if (wanted < kInputs)
    return fail("{}: samples of {} kB, want at least {:g}", path.string(), spec.sample_kb, kInputs / 1000.0);
  const double all = wanted * static_cast<double>(spec.samples);
  if (all > kMost) return fail("{}: {:g} bytes in all, want at most {:g}", path.string(), all, kMost);
  const auto bytes = static_cast<std::size_t>(wanted);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (auto made = make_file(path, spec.samples, bytes); !made) return unexpected(made.error());
  }
  auto file = ByteFile::open(path);
  if (!file) return unexpected(file.error());
  if (static_cast<double>(file->size()) != all)
    return fail("{}: {} bytes, want {:.0f} for {} samples of {} bytes; without it, it is made anew", path.string(),
                file->size(), all, spec.samples, bytes);
  return std::make_unique<DialsDataset>(std::move(*file), spec, bytes);
}

void burn(Seconds time) {
  if (time <= Seconds(0)) return;
  const Seconds end = processor_time() + time;
  while (processor_time() < end) {
  }
}

}  // namespace mayfly
