#include "data/images.h"

#include <gtest/gtest.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
// After cstdio.
#include <jpeglib.h>

#include "base/file.h"
#include "data/picture_decoder.h"
#include "support/temp_folder.h"

namespace mayfly {
namespace {

namespace fs = std::filesystem;

std::string jpeg(const Pixels& picture, int quality = 95) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPLE*>(picture.bytes.data()) + static_cast<std::size_t>(info.next_scanline) *
                                                                 info.image_width *
                                                                 static_cast<unsigned>(picture.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string result(reinterpret_cast<char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return result;
}

/// Of any of libpng's formats.
std::string png(const Pixels& picture, png_uint_32 format) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = format;
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_get_memory_size(image, size, 0, picture.bytes.data(), 0, nullptr), 0);
  std::string result(size, '\0');
  EXPECT_NE(png_image_write_to_memory(&image, result.data(), &size, 0, picture.bytes.data(), 0, nullptr), 0);
  result.resize(size);
  return result;
}

/// Left half one colour, right half another.
Pixels halves(int height, int width, std::vector<std::uint8_t> left, std::vector<std::uint8_t> right) {
  Pixels picture{.channels = static_cast<int>(left.size()), .height = height, .width = width};
  for (int i = 0; i < height * width; ++i) {
    const auto& colour = i % width < width / 2 ? left : right;
    for (const auto value : colour) picture.bytes.push_back(value);
  }
  return picture;
}

std::span<const std::byte> bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

std::vector<float> covered(const Pixels& picture, int height, int width) {
  std::vector<float> out(static_cast<std::size_t>(picture.channels * height * width));
  cover(picture, height, width, out);
  return out;
}

TEST(Cover, LeavesAPictureOfTheRightSizeAlone) {
  const Pixels picture{.channels = 1, .height = 2, .width = 3, .bytes = {0, 255, 51, 102, 153, 204}};
  const auto out = covered(picture, 2, 3);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(out[i], static_cast<float>(picture.bytes[i]) / 127.5f - 1);
}

// 2 x 4 to 2 x 2: the outer columns are cut off.
TEST(Cover, CutsTheMiddleOut) {
  const Pixels picture{.channels = 1, .height = 2, .width = 4, .bytes = {9, 0, 255, 9, 9, 255, 0, 9}};
  EXPECT_EQ(covered(picture, 2, 2), (std::vector<float>{-1, 1, 1, -1}));
}

// 4 x 4 to 2 x 2: a triangle of reach 2 around 1 weighs the pixels at .5 1.5 2.5 by 3 3 1, and so on from the other
// end: with 0 0 0 255 in a row the second is 255 * 3 / 7.
TEST(Cover, AveragesWhatItShrinks) {
  const Pixels picture{
      .channels = 1, .height = 4, .width = 4, .bytes = {0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255}};
  const auto out = covered(picture, 2, 2);
  EXPECT_NEAR(out[0], -1, 1e-6);
  EXPECT_NEAR(out[1], 2 * 3. / 7 - 1, 1e-6);
}

TEST(Cover, PutsChannelsBehindEachOther) {
  const Pixels picture{.channels = 3, .height = 1, .width = 2, .bytes = {255, 0, 0, 0, 255, 0}};
  EXPECT_EQ(covered(picture, 1, 2), (std::vector<float>{1, -1, -1, 1, -1, -1}));
  EXPECT_EQ(covered(picture, 4, 8).size(), 96u) << "small ones are enlarged";
}

TEST(DecodedPicture, ReadsJpegAndPngAsGreyAndColour) {
  const auto picture = halves(16, 16, {255, 0, 0}, {0, 0, 255});
  for (const auto& file : {jpeg(picture), png(picture, PNG_FORMAT_RGB)}) {
    const auto colour = decoded_picture(bytes_in(file), "f", 3, 16, 16);
    ASSERT_TRUE(colour.has_value()) << colour.error().message;
    EXPECT_NEAR(colour->bytes[0], 255, 6);
    EXPECT_NEAR(colour->bytes[2], 0, 6);
    EXPECT_NEAR(colour->bytes[15 * 3 + 2], 255, 6);
    const auto grey = decoded_picture(bytes_in(file), "f", 1, 16, 16);
    ASSERT_TRUE(grey.has_value()) << grey.error().message;
    EXPECT_EQ(grey->bytes.size(), 256u);
    EXPECT_GT(grey->bytes[0], grey->bytes[15]) << "red is brighter than blue";
  }
}

TEST(DecodedPicture, LaysTransparentPartsOnBlack) {
  const auto file = png(halves(4, 4, {255, 255, 255, 0}, {255, 255, 255, 255}), PNG_FORMAT_RGBA);
  const auto picture = decoded_picture(bytes_in(file), "f", 1, 4, 4);
  ASSERT_TRUE(picture.has_value());
  EXPECT_EQ(picture->bytes[0], 0);
  EXPECT_EQ(picture->bytes[3], 255);
}

TEST(DecodedPicture, ShrinksLargeJpegsWhileDecodingButNotBelowWhatIsWanted) {
  const auto file = jpeg(halves(256, 512, {0}, {255}));
  const auto size = [&](int height, int width) {
    const auto picture = decoded_picture(bytes_in(file), "f", 1, height, width);
    return std::pair(picture->height, picture->width);
  };
  EXPECT_EQ(size(32, 32), std::pair(32, 64));
  EXPECT_EQ(size(33, 32), std::pair(64, 128));
  EXPECT_EQ(size(129, 1), std::pair(256, 512));
  EXPECT_EQ(size(1000, 1000), std::pair(256, 512));
}

TEST(DecodedPicture, RefusesHalfAPicture) {
  Pixels noisy{.channels = 3, .height = 64, .width = 64};
  for (int i = 0; i < 64 * 64 * 3; ++i)
    noisy.bytes.push_back(static_cast<std::uint8_t>(std::int64_t{i} * i * 37 % 251));
  for (const auto& [file, name] : {std::pair{jpeg(noisy), "JPEG"}, std::pair{png(noisy, PNG_FORMAT_RGB), "PNG"}}) {
    for (const auto size : {file.size() / 2, file.size() - 20, std::size_t{40}, std::size_t{8}}) {
      const auto cut = file.substr(0, size);
      const auto picture = decoded_picture(bytes_in(cut), "f.x", 3, 64, 64);
      ASSERT_FALSE(picture.has_value()) << name << " of " << size;
      EXPECT_TRUE(picture.error().message.starts_with(fmt::format("f.x: not a whole {} picture: ", name)))
          << picture.error().message;
    }
    auto damaged = file;
    for (std::size_t i = file.size() / 3; i < file.size() / 3 + 200; ++i) damaged[i] = '\xff';
    EXPECT_FALSE(decoded_picture(bytes_in(damaged), "f", 3, 64, 64).has_value()) << name;
  }
  const std::string text = "not a picture";
  EXPECT_EQ(decoded_picture(bytes_in(text), "f", 3, 8, 8).error().message,
            "f: 13 bytes that do not begin like a JPEG or PNG picture");
  EXPECT_FALSE(decoded_picture({}, "f", 3, 8, 8).has_value());
}

class Images : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) {
    const auto path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    ASSERT_TRUE(save_text(path, bytes));
  }
  std::string said(const Error& error) const {
    const auto prefix = folder_.path().string();
    EXPECT_TRUE(error.message.starts_with(prefix)) << error.message;
    return error.message.substr(prefix.size());
  }
  support::TempFolder folder_{};
};

TEST_F(Images, AreNumberedByClassAndName) {
  write("cat/b.PNG", png(halves(8, 8, {0}, {0}), PNG_FORMAT_GRAY));
  write("cat/a.jpeg", jpeg(halves(8, 8, {255}, {255})));
  write("cat/notes.txt", "passed over");
  write("dog/c.jpg", jpeg(halves(16, 8, {255}, {255})));
  write(".thumbnails/d.jpg", "passed over");
  write("README", "passed over");
  const auto data = open_images(folder_.path(), {3, 8, 8});
  ASSERT_TRUE(data.has_value()) << data.error().message;
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->classes(), 2);
  const std::vector<std::int64_t> all{0, 1, 2};
  std::vector<float> inputs(3 * 192);
  std::vector<std::int64_t> labels(3);
  ASSERT_TRUE((*data)->read(all, inputs, labels));
  EXPECT_EQ(labels, (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_NEAR(inputs[0], 1, .02);
  EXPECT_EQ(inputs[192], -1);
  EXPECT_NEAR(inputs[2 * 192], 1, .02);
}

TEST_F(Images, SayWhatIsWrong) {
  EXPECT_EQ(said(open_images(folder_.path() / "absent", {3, 8, 8}).error()), "/absent: no such folder");
  EXPECT_EQ(said(open_images(folder_.path(), {3, 8, 8}).error()), ": no folders in it, want one for each class");
  write("cat/notes.txt", "");
  EXPECT_EQ(said(open_images(folder_.path(), {3, 8, 8}).error()), "/cat: no JPEG or PNG files in it");
  write("cat/a.jpg", "rubbish");
  write("cat/b.jpg", "rubbish");
  const auto data = open_images(folder_.path(), {3, 8, 8});
  ASSERT_TRUE(data.has_value());
  std::vector<float> inputs(192);
  std::vector<std::int64_t> labels(1);
  EXPECT_EQ(said((*data)->read(std::vector<std::int64_t>{0}, inputs, labels).error()),
            "/cat/a.jpg: 7 bytes that do not begin like a JPEG or PNG picture");
  fs::remove(folder_.path() / "cat/b.jpg");
  EXPECT_EQ(said((*data)->read(std::vector<std::int64_t>{1}, inputs, labels).error()), "/cat/b.jpg: no such file");
}

}  // namespace
}  // namespace mayfly
