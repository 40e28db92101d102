#include "data/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/text.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are written as they stand in memory");

constexpr std::size_t kLengthBytes = 8;
/// The limit of the reference implementation.
constexpr std::uint64_t kLongestHeader = 100'000'000;
/// Whole numbers up to here are exact as doubles, which is what JSON has.
constexpr double kLargest = 9007199254740992.0;
constexpr std::string_view kNotes = "__metadata__";
constexpr std::string_view kTypes = "F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL";

std::optional<std::int64_t> width_of(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64") return 8;
  if (dtype == "F32" || dtype == "I32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL") return 1;
  return std::nullopt;
}

/// Nothing where the product leaves the range of exact numbers, or the type is not known.
std::optional<std::int64_t> bytes_of(std::string_view dtype, std::span<const std::int64_t> shape) {
  auto size = width_of(dtype);
  if (!size) return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || extent > static_cast<std::int64_t>(kLargest) / *size) return std::nullopt;
    *size *= extent;
  }
  return size;
}

/// Widest first, else as given.
std::vector<const TensorView*> laid_out(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return width_of(a->dtype).value_or(0) > width_of(b->dtype).value_or(0);
  });
  return order;
}

Result<void> check_writable(std::span<const TensorView> tensors, const std::string& file) {
  std::set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    if (tensor.name == kNotes || valid_utf8(tensor.name) < tensor.name.size())
      return fail("{}: a tensor cannot be called '{}'", file, tensor.name);
    if (!names.insert(tensor.name).second) return fail("{}: two tensors are called '{}'", file, tensor.name);
    const auto size = bytes_of(tensor.dtype, tensor.shape);
    if (!size || static_cast<std::uint64_t>(*size) != tensor.bytes.size())
      return fail("{}: tensor '{}' has {} bytes, which do not fit {} {}", file, tensor.name, tensor.bytes.size(),
                  tensor.dtype, Json(tensor.shape).dump());
  }
  return {};
}

/// The JSON at the start of a file, on its way into views.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::span<const std::byte> data, const std::string& file)
      : json_(text, file), data_(data) {}

  Result<void> read(TensorFile& out) {
    json_.begin_object("an object with the tensors");
    while (const auto key = json_.next_key()) {
      if (const std::string name(*key); name == kNotes) {
        read_notes(out.notes);
      } else {
        read_tensor(name);
      }
    }
    json_.finish();
    if (json_.ok()) place(out);
    if (!json_.ok()) return unexpected(json_.error());
    return {};
  }

 private:
  struct Placed {
    TensorView view{};
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  std::int64_t whole(std::string_view wanted) {
    const double value = json_.number(wanted);
    if (json_.ok() && (value < 0 || value > kLargest || value != static_cast<double>(static_cast<std::int64_t>(value))))
      json_.reject(fmt::format("{}, want {}", value, wanted));
    return json_.ok() ? static_cast<std::int64_t>(value) : 0;
  }

  std::vector<std::int64_t> wholes(std::string_view wanted) {
    std::vector<std::int64_t> list;
    json_.begin_list(wanted);
    while (json_.next_item()) list.push_back(whole("a whole number from 0"));
    return list;
  }

  void read_notes(std::map<std::string, std::string>& notes) {
    json_.begin_object("an object of texts");
    while (const auto key = json_.next_key()) {
      const std::string name(*key);
      const std::string note(json_.text("a text"));
      if (!notes.emplace(name, note).second) json_.reject(fmt::format("key '{}' stands twice", name));
    }
  }

  void read_tensor(const std::string& name) {
    Placed tensor{.view = {.name = name, .dtype = {}}};
    bool has_shape = false;
    std::vector<std::int64_t> offsets;
    json_.begin_object("an object with dtype, shape and data_offsets");
    while (const auto key = json_.next_key()) {
      if (*key == "dtype") {
        tensor.view.dtype = json_.text("a text");
      } else if (*key == "shape") {
        has_shape = true;
        tensor.view.shape = wholes("a list of extents");
      } else if (*key == "data_offsets") {
        offsets = wholes("a list of two offsets");
      } else {
        json_.reject(fmt::format("unknown key '{}', want dtype, shape and data_offsets", *key));
      }
    }
    if (!json_.ok()) return;
    if (!width_of(tensor.view.dtype)) {
      json_.reject(fmt::format("tensor '{}' has dtype '{}', want {}", name, tensor.view.dtype, kTypes));
    } else if (!has_shape || offsets.size() != 2) {
      json_.reject(fmt::format("tensor '{}' wants a shape and two offsets", name));
    } else {
      tensor.begin = offsets[0];
      tensor.end = offsets[1];
      tensors_.push_back(std::move(tensor));
    }
  }

  /// The tensors must cover the data from first to last byte, each once.
  void place(TensorFile& out) {
    std::stable_sort(tensors_.begin(), tensors_.end(), [](const Placed& a, const Placed& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::set<std::string_view> names;
    std::int64_t at = 0;
    for (Placed& tensor : tensors_) {
      const auto& view = tensor.view;
      const auto size = bytes_of(view.dtype, view.shape);
      if (!names.insert(view.name).second) return json_.reject(fmt::format("two tensors are called '{}'", view.name));
      if (tensor.begin != at || tensor.end < at || static_cast<std::uint64_t>(tensor.end) > data_.size())
        return json_.reject(fmt::format("tensor '{}' is at bytes {} to {}, want it to start at {} and to end by {}",
                                        view.name, tensor.begin, tensor.end, at, data_.size()));
      if (size != tensor.end - tensor.begin)
        return json_.reject(fmt::format("tensor '{}' has {} bytes, which do not fit {} {}", view.name,
                                        tensor.end - tensor.begin, view.dtype, Json(view.shape).dump()));
      tensor.view.bytes = data_.subspan(static_cast<std::size_t>(tensor.begin), static_cast<std::size_t>(*size));
      at = tensor.end;
    }
    if (static_cast<std::uint64_t>(at) != data_.size())
      return json_.reject(fmt::format("{} bytes of tensors, want the {} that are there", at, data_.size()));
    for (Placed& tensor : tensors_) out.tensors.push_back(std::move(tensor.view));
  }

  JsonReader json_;
  std::span<const std::byte> data_;
  std::vector<Placed> tensors_{};
};

}  // namespace

std::string safetensors_header(std::span<const TensorView> tensors, const std::map<std::string, std::string>& notes) {
  Json json = Json::object();
  if (!notes.empty()) json[std::string(kNotes)] = notes;
  std::uint64_t at = 0;
  for (const TensorView* tensor : laid_out(tensors)) {
    json[tensor->name] = {
        {"dtype", tensor->dtype}, {"shape", tensor->shape}, {"data_offsets", {at, at + tensor->bytes.size()}}};
    at += tensor->bytes.size();
  }
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const auto length = std::bit_cast<std::array<char, kLengthBytes>>(std::uint64_t{text.size()});
  return std::string(length.data(), length.size()) + text;
}

std::vector<std::span<const std::byte>> UnwrittenTensors::pieces() const {
  std::vector<std::span<const std::byte>> all{std::as_bytes(std::span(header))};
  all.insert(all.end(), tensors.begin(), tensors.end());
  return all;
}

Result<UnwrittenTensors> unwritten_safetensors(const std::string& name, std::span<const TensorView> tensors,
                                               const std::map<std::string, std::string>& notes) {
  if (auto checked = check_writable(tensors, name); !checked) return unexpected(checked.error());
  UnwrittenTensors file{.header = safetensors_header(tensors, notes)};
  for (const TensorView* tensor : laid_out(tensors)) file.tensors.push_back(tensor->bytes);
  return file;
}

Result<FileSeal> write_safetensors(const fs::path& path, std::span<const TensorView> tensors,
                                   const std::map<std::string, std::string>& notes) {
  const auto content = unwritten_safetensors(path.string(), tensors, notes);
  if (!content) return unexpected(content.error());
  auto file = NewFile::create(path);
  if (!file) return unexpected(file.error());
  for (const auto piece : content->pieces())
    if (auto done = file->write(piece); !done) return unexpected(done.error());
  return file->close();
}

const TensorView* TensorFile::find(std::string_view name) const {
  const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}

Result<TensorFile> parse_safetensors(std::vector<std::byte> bytes, const std::string& file) {
  TensorFile out;
  out.bytes = std::move(bytes);
  const std::span<const std::byte> all(out.bytes);
  if (all.size() < kLengthBytes) return fail("{}: {} bytes, want a safetensors file", file, all.size());
  std::uint64_t length = 0;
  std::memcpy(&length, all.data(), kLengthBytes);
  const std::uint64_t most = std::min<std::uint64_t>(all.size() - kLengthBytes, kLongestHeader);
  if (length > most)
    return fail("{}: its header should have {} bytes, want at most {} (truncated, or a file of another kind?)", file,
                length, most);
  const auto header = all.subspan(kLengthBytes, static_cast<std::size_t>(length));
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  if (!text.starts_with('{')) return fail("{}: its header does not begin with '{{'", file);
  HeaderReader reader(text, all.subspan(kLengthBytes + header.size()), file);
  if (auto done = reader.read(out); !done) return unexpected(done.error());
  return out;
}

Result<TensorFile> load_safetensors(const fs::path& path) {
  std::error_code error;
  const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  std::ifstream in(path, std::ios::binary);
  if (error || !in || !fs::is_regular_file(path, error))
    return fail("{}: cannot read: {}", path.string(), error ? error.message() : std::strerror(errno));
  std::vector<std::byte> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(in.gcount()) != size) return fail("{}: reading failed", path.string());
  return parse_safetensors(std::move(bytes), path.string());
}

}  // namespace mayfly
