#include "data/images.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "data/byte_file.h"
#include "data/picture_decoder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

class ImageDataset final : public Dataset {
 public:
  struct Class {
    fs::path folder{};
    std::vector<std::string> files{};  ///< names
    std::int64_t begin = 0;            ///< number of its first sample
  };
  ImageDataset(std::vector<Class> classes, std::vector<int> shape)
      : classes_(std::move(classes)), shape_(std::move(shape)) {}
  std::int64_t size() const override {
    return classes_.back().begin + static_cast<std::int64_t>(classes_.back().files.size());
  }
  std::vector<int> shape() const override { return shape_; }
  int labels() const override { return 1; }
  int classes() const override { return static_cast<int>(classes_.size()); }
  bool in_files() const override { return true; }
  Result<void> fetch(std::int64_t sample, std::vector<std::byte>& raw) const override {
    constexpr std::size_t kMost = std::size_t{256} << 20;
    return read_whole(file(sample), kMost, raw);
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte> raw, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    const auto picture = decoded_picture(raw, file(sample).string(), shape_[0], shape_[1], shape_[2]);
    if (!picture) return unexpected(picture.error());
    cover(*picture, shape_[1], shape_[2], inputs);
    labels[0] = number_of_class(sample);
    return {};
  }

 private:
  std::int64_t number_of_class(std::int64_t sample) const {
    const auto after = std::upper_bound(classes_.begin(), classes_.end(), sample,
                                        [](std::int64_t number, const Class& one) { return number < one.begin; });
    return after - classes_.begin() - 1;
  }
  fs::path file(std::int64_t sample) const {
    const auto& one = classes_[static_cast<std::size_t>(number_of_class(sample))];
    return one.folder / one.files[static_cast<std::size_t>(sample - one.begin)];
  }

  std::vector<Class> classes_;
  std::vector<int> shape_;
};

bool is_picture(const fs::path& name) {
  auto ending = name.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char letter) { return static_cast<char>(std::tolower(static_cast<unsigned char>(letter))); });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

/// Names in a folder that are wanted, sorted.
template <class Wanted>
Result<std::vector<std::string>> names_in(const fs::path& folder, Wanted wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (wanted(*entry)) names.push_back(entry->path().filename().string());
  }
  if (error == std::errc::no_such_file_or_directory) return fail("{}: no such folder", folder.string());
  if (error) return fail("{}: cannot read the folder: {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_images(const fs::path& folder, const std::vector<int>& shape) {
  MAYFLY_CHECK(shape.size() == 3, "read_train wants a shape");
  const auto folders = names_in(folder, [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return entry.is_directory(ignored) && !entry.path().filename().string().starts_with(".");
  });
  if (!folders) return unexpected(folders.error());
  if (folders->empty()) return fail("{}: no folders in it, want one for each class", folder.string());
  std::vector<ImageDataset::Class> classes;
  std::int64_t samples = 0;
  for (const auto& name : *folders) {
    auto files = names_in(folder / name, [](const auto& entry) { return is_picture(entry.path()); });
    if (!files) return unexpected(files.error());
    if (files->empty()) return fail("{}: no JPEG or PNG files in it", (folder / name).string());
    classes.push_back({.folder = folder / name, .files = std::move(*files), .begin = samples});
    samples += static_cast<std::int64_t>(classes.back().files.size());
  }
  return std::make_unique<ImageDataset>(std::move(classes), shape);
}

}  // namespace mayfly
