#include "data/picture_decoder.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csetjmp>
#include <cstdio>
// After cstdio, which it takes for granted.
#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "base/check.h"

namespace mayfly {
namespace {

/// libjpeg calls back on errors and wants never to return.
struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> text{};
};

void leave_with_message(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->text.data());
  std::longjmp(errors->back, 1);
}

/// A warning says that pixels were made up, but for these.
void take_warning(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR)
    leave_with_message(info);
}

/// Eighths of the size, as libjpeg can leave out frequencies.
void choose_scale(jpeg_decompress_struct& info, int wanted_height, int wanted_width) {
  info.scale_denom = 8;
  info.scale_num = 8;
  for (const unsigned eighths : {1U, 2U, 4U}) {
    if (std::uint64_t{info.image_height} * eighths / 8 < static_cast<std::uint64_t>(wanted_height)) continue;
    if (std::uint64_t{info.image_width} * eighths / 8 < static_cast<std::uint64_t>(wanted_width)) continue;
    info.scale_num = eighths;
    return;
  }
}

/// Why it failed, empty where it did not. Nothing with a destructor may live here: errors jump out.
const char* decode_jpeg(std::span<const std::byte> bytes, int wanted_height, int wanted_width,
                        jpeg_decompress_struct& info, JpegErrors& errors, Pixels& picture) {
  if (setjmp(errors.back) != 0) return errors.text.data();
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  if (info.num_components != 1 && info.num_components != 3) return "colours are neither grey nor RGB";
  if (std::int64_t{info.image_width} * info.image_height > kMostPixels) return "more than 2^27 pixels";
  info.out_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  choose_scale(info, wanted_height, wanted_width);
  jpeg_start_decompress(&info);
  picture.height = static_cast<int>(info.output_height);
  picture.width = static_cast<int>(info.output_width);
  const auto row = static_cast<std::size_t>(info.output_width) * static_cast<std::size_t>(info.output_components);
  picture.bytes.resize(row * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW line = picture.bytes.data() + row * info.output_scanline;
    jpeg_read_scanlines(&info, &line, 1);
  }
  jpeg_finish_decompress(&info);
  return "";
}

Result<Pixels> decoded_jpeg(std::span<const std::byte> bytes, const std::string& file, int channels, int wanted_height,
                            int wanted_width) {
  Pixels picture{.channels = channels};
  JpegErrors errors;
  jpeg_decompress_struct info{};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave_with_message;
  errors.manager.emit_message = take_warning;
  const std::string wrong = decode_jpeg(bytes, wanted_height, wanted_width, info, errors, picture);
  jpeg_destroy_decompress(&info);
  if (!wrong.empty()) return fail("{}: not a whole JPEG picture: {}", file, wrong);
  return picture;
}

Result<Pixels> decoded_png(std::span<const std::byte> bytes, const std::string& file, int channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  const auto failed = [&] {
    const std::string message = image.message;
    png_image_free(&image);
    return fail("{}: not a whole PNG picture: {}", file, message);
  };
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) return failed();
  if (std::int64_t{image.width} * image.height > kMostPixels) {
    png_image_free(&image);
    return fail("{}: not a whole PNG picture: more than 2^27 pixels", file);
  }
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  Pixels picture{
      .channels = channels, .height = static_cast<int>(image.height), .width = static_cast<int>(image.width)};
  picture.bytes.resize(PNG_IMAGE_SIZE(image));
  const png_color black{};
  if (png_image_finish_read(&image, &black, picture.bytes.data(), 0, nullptr) == 0) return failed();
  return picture;
}

/// Which pixels of a line go into one of a shorter or longer line, and how much each.
struct Tap {
  int first = 0;
  std::vector<float> weights{};
};

/// `from` is where the first of `size` wanted pixels begins in a line of `length`, each `step` long there.
std::vector<Tap> taps(int length, int size, double from, double step) {
  const double reach = std::max(1.0, step);
  std::vector<Tap> result(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) {
    auto& tap = result[static_cast<std::size_t>(i)];
    const double centre = from + (i + .5) * step;
    tap.first = std::clamp(static_cast<int>(std::floor(centre - reach)), 0, length - 1);
    const int last = std::clamp(static_cast<int>(std::ceil(centre + reach)), tap.first + 1, length);
    double sum = 0;
    for (int at = tap.first; at < last; ++at) {
      const double weight = std::max(0.0, 1 - std::abs(at + .5 - centre) / reach);
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    if (sum <= 0) tap.weights[0] = 1, sum = 1;
    for (auto& weight : tap.weights) weight = static_cast<float>(weight / sum);
  }
  return result;
}

}  // namespace

Result<Pixels> decoded_picture(std::span<const std::byte> bytes, const std::string& file, int channels,
                               int wanted_height, int wanted_width) {
  MAYFLY_CHECK(channels == 1 || channels == 3, "grey or RGB");
  const auto begins = [&](std::initializer_list<int> wanted) {
    return bytes.size() > wanted.size() &&
           std::equal(wanted.begin(), wanted.end(), bytes.begin(),
                      [](int number, std::byte byte) { return number == static_cast<int>(byte); });
  };
  if (begins({0xff, 0xd8})) return decoded_jpeg(bytes, file, channels, wanted_height, wanted_width);
  if (begins({0x89, 'P', 'N', 'G'})) return decoded_png(bytes, file, channels);
  return fail("{}: {} bytes that do not begin like a JPEG or PNG picture", file, bytes.size());
}

void cover(const Pixels& picture, int height, int width, std::span<float> out) {
  const auto channels = static_cast<std::size_t>(picture.channels);
  MAYFLY_CHECK(out.size() == channels * static_cast<std::size_t>(height) * static_cast<std::size_t>(width), "room");
  // Pixels of the picture for each one wanted, the same both ways.
  const double step =
      std::min(static_cast<double>(picture.height) / height, static_cast<double>(picture.width) / width);
  const auto columns = taps(picture.width, width, (picture.width - width * step) / 2, step);
  const auto rows = taps(picture.height, height, (picture.height - height * step) / 2, step);
  const auto row_length = static_cast<std::size_t>(picture.width) * channels;
  const auto plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  std::vector<float> line(row_length);
  for (std::size_t y = 0; y < rows.size(); ++y) {
    std::fill(line.begin(), line.end(), 0.0f);
    const auto* row = picture.bytes.data() + static_cast<std::size_t>(rows[y].first) * row_length;
    for (const float weight : rows[y].weights) {
      for (std::size_t x = 0; x < row_length; ++x) line[x] += weight * static_cast<float>(row[x]);
      row += row_length;
    }
    for (std::size_t x = 0; x < columns.size(); ++x) {
      for (std::size_t c = 0; c < channels; ++c) {
        const auto* from = line.data() + static_cast<std::size_t>(columns[x].first) * channels + c;
        float light = 0;
        for (const float weight : columns[x].weights) {
          light += weight * *from;
          from += channels;
        }
        out[c * plane + y * static_cast<std::size_t>(width) + x] = std::clamp(light / 127.5f - 1, -1.0f, 1.0f);
      }
    }
  }
}

}  // namespace mayfly
