#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/file.h"

namespace mayfly {
namespace {

struct InflateEnd {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

}  // namespace

Result<std::string> unpacked(std::string bytes, const std::string& file, std::size_t most) {
  if (!bytes.starts_with("\x1f\x8b")) return bytes;
  z_stream stream{};
  constexpr int kGzipWithLargestWindow = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipWithLargestWindow) != Z_OK) return fail("{}: zlib cannot start", file);
  const std::unique_ptr<z_stream, InflateEnd> guard(&stream);
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string result;
  std::vector<char> chunk(std::size_t{1} << 18);
  // A gzip file may consist of several parts, one after another.
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    const int state = inflate(&stream, Z_NO_FLUSH);
    result.append(chunk.data(), chunk.size() - stream.avail_out);
    if (result.size() > most) return fail("{}: unpacks into more than {} bytes", file, most);
    if (state == Z_STREAM_END) {
      if (stream.avail_in == 0) return result;
      if (inflateReset(&stream) != Z_OK) return fail("{}: zlib cannot go on", file);
    } else if (state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      return fail("{}: gzip file ends early, after {} bytes unpacked", file, result.size());
    } else if (state != Z_OK) {
      return fail("{}: damaged gzip file ({}), after {} bytes unpacked", file,
                  stream.msg != nullptr ? stream.msg : "no reason given", result.size());
    }
  }
}

Result<std::string> load_unpacked(const std::filesystem::path& path) {
  auto bytes = load_text(path);
  if (!bytes) return unexpected(bytes.error());
  return unpacked(std::move(*bytes), path.string());
}

}  // namespace mayfly
