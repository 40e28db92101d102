#include "data/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace mayfly {
namespace {

constexpr int kSide = 28;

struct Point {
  double x = 0;
  double y = 0;
};
struct Line {
  Point from{};
  Point to{};
};
/// Pen strokes in a square from -1 to 1, y downwards.
using Glyph = std::vector<Line>;

void add_path(Glyph& glyph, std::initializer_list<Point> points) {
  for (const auto* p = points.begin(); p + 1 < points.end(); ++p) glyph.push_back({p[0], p[1]});
}

/// Degrees clockwise from three o'clock.
void add_arc(Glyph& glyph, Point centre, Point radius, double from, double to) {
  constexpr double kDegreesALine = 30;
  const int lines = static_cast<int>(std::ceil(std::fabs(to - from) / kDegreesALine));
  const auto at = [&](int i) {
    const double angle = (from + (to - from) * i / lines) * std::numbers::pi / 180;
    return Point{centre.x + radius.x * std::cos(angle), centre.y + radius.y * std::sin(angle)};
  };
  for (int i = 0; i < lines; ++i) glyph.push_back({at(i), at(i + 1)});
}

std::array<Glyph, 10> drawn_glyphs() {
  std::array<Glyph, 10> glyphs;
  add_arc(glyphs[0], {0, 0}, {.5, .8}, 0, 360);
  add_path(glyphs[1], {{-.3, -.5}, {.05, -.8}, {.05, .8}});
  add_arc(glyphs[2], {0, -.35}, {.5, .45}, 180, 390);
  add_path(glyphs[2], {{.43, -.12}, {-.5, .8}, {.55, .8}});
  add_arc(glyphs[3], {-.05, -.4}, {.48, .4}, 200, 450);
  add_arc(glyphs[3], {-.05, .4}, {.55, .4}, 270, 520);
  add_path(glyphs[4], {{.25, .8}, {.25, -.8}, {-.6, .3}, {.6, .3}});
  add_path(glyphs[5], {{.5, -.8}, {-.4, -.8}, {-.45, -.1}});
  add_arc(glyphs[5], {-.02, .3}, {.52, .5}, 225, 510);
  add_arc(glyphs[6], {0, .35}, {.48, .45}, 0, 360);
  add_path(glyphs[6], {{.3, -.8}, {-.25, -.3}, {-.47, .3}});
  add_path(glyphs[7], {{-.55, -.8}, {.55, -.8}, {-.15, .8}});
  add_arc(glyphs[8], {0, -.42}, {.4, .38}, 0, 360);
  add_arc(glyphs[8], {0, .4}, {.5, .42}, 0, 360);
  add_arc(glyphs[9], {0, -.35}, {.48, .45}, 0, 360);
  add_path(glyphs[9], {{.48, -.35}, {.4, .2}, {.1, .8}});
  return glyphs;
}

/// A line laid out for the distance of many points.
struct Stroke {
  float x, y, dx, dy, per_square;  ///< start, direction, 1 / length^2

  explicit Stroke(const Line& line)
      : x(static_cast<float>(line.from.x)),
        y(static_cast<float>(line.from.y)),
        dx(static_cast<float>(line.to.x) - x),
        dy(static_cast<float>(line.to.y) - y),
        per_square(1 / (dx * dx + dy * dy)) {}

  float square_distance(float px, float py) const {
    const float along = ((px - x) * dx + (py - y) * dy) * per_square;
    const float t = along < 0 ? 0 : along > 1 ? 1 : along;
    const float ex = px - x - t * dx;
    const float ey = py - y - t * dy;
    return ex * ex + ey * ey;
  }
};

double between(Rng& rng, double low, double high) { return low + (high - low) * rng.uniform(); }

/// How one digit is held: from the square of the glyph to pixels.
struct Pose {
  double angle = 0;
  double slant = 0;
  Point size{};  ///< half of the glyph's square, pixels
  Point centre{};
  double bend = 0;
  double phase = 0;

  Point pixel(Point p) const {
    const double bent = p.x + slant * p.y + bend * std::sin(std::numbers::pi * p.y + phase);
    const double x = bent * size.x;
    const double y = p.y * size.y;
    return {centre.x + x * std::cos(angle) - y * std::sin(angle), centre.y + x * std::sin(angle) + y * std::cos(angle)};
  }
};

Pose drawn_pose(Rng& rng) {
  constexpr double kMiddle = (kSide - 1) / 2.0;
  Pose pose;
  pose.angle = between(rng, -.35, .35);
  pose.slant = between(rng, -.3, .3);
  pose.size = {between(rng, 7, 12), between(rng, 8, 12)};
  pose.centre = {kMiddle + between(rng, -3, 3), kMiddle + between(rng, -3, 3)};
  pose.bend = between(rng, 0, .2);
  pose.phase = between(rng, 0, 2 * std::numbers::pi);
  return pose;
}

/// One digit's light from 0 to 1: 1 within the pen's half width, fading over a pixel.
void draw(const Glyph& lines, double half_width, std::span<float> picture) {
  std::fill(picture.begin(), picture.end(), static_cast<float>(kSide * kSide));
  for (const auto& line : lines) {
    const Stroke stroke(line);
    for (int y = 0; y < kSide; ++y) {
      float* row = picture.data() + y * kSide;
      for (int x = 0; x < kSide; ++x)
        row[x] = std::min(row[x], stroke.square_distance(static_cast<float>(x), static_cast<float>(y)));
    }
  }
  const auto edge = static_cast<float>(half_width + .5);
  for (auto& pixel : picture) pixel = std::clamp(edge - std::sqrt(pixel), 0.0f, 1.0f);
}

/// Near enough to normal, mean 0, deviation 1, and four times as fast: the sum of four 16-bit draws.
float rough_normal(Rng& rng) {
  const auto bits = rng.bits();
  const auto sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  constexpr float kDeviation = 37837.2f;  // sqrt(4 / 12) * 2^16
  return (static_cast<float>(sum) - 131070.0f) / kDeviation;
}

class DigitsDataset final : public Dataset {
 public:
  DigitsDataset(std::int64_t samples, std::uint64_t seed) : glyphs_(drawn_glyphs()), samples_(samples), seed_(seed) {}
  std::int64_t size() const override { return samples_; }
  std::vector<int> shape() const override { return {1, kSide, kSide}; }
  int labels() const override { return 1; }
  int classes() const override { return 10; }
  Result<void> fetch(std::int64_t, std::vector<std::byte>& raw) const override {
    raw.clear();
    return {};
  }
  Result<void> prepare(std::int64_t sample, std::span<const std::byte>, std::span<float> inputs,
                       std::span<std::int64_t> labels) const override {
    labels[0] = draw_sample(sample, inputs);
    return {};
  }

 private:
  int draw_sample(std::int64_t sample, std::span<float> picture) const {
    Rng rng(Rng(seed_).bits() ^ static_cast<std::uint64_t>(sample));
    const int digit = rng.below(10);
    const Pose pose = drawn_pose(rng);
    Glyph lines = glyphs_[static_cast<std::size_t>(digit)];
    for (auto& line : lines) line = {pose.pixel(line.from), pose.pixel(line.to)};
    draw(lines, between(rng, .5, 1.8), picture);
    const auto contrast = static_cast<float>(between(rng, .5, 1));
    for (auto& light : picture) light = 2 * contrast * light - 1 + .25f * rough_normal(rng);
    return digit;
  }

  std::array<Glyph, 10> glyphs_;
  std::int64_t samples_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Dataset> digits_dataset(std::int64_t samples, std::uint64_t seed) {
  return std::make_unique<DigitsDataset>(samples, seed);
}

}  // namespace mayfly
