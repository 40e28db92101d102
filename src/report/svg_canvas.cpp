#include "report/svg_canvas.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace mayfly {
namespace {

constexpr std::string_view kNoCharacter = "\xEF\xBF\xBD";  // U+FFFD

/// A tenth of a unit is finer than what is printed.
std::string number(double value) {
  MAYFLY_CHECK(std::isfinite(value), "a picture of finite numbers");
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string spot_text(Spot spot) { return number(spot.x) + "," + number(spot.y); }

/// Spots that fall on the one before are left out.
std::string points_text(const std::vector<Spot>& spots) {
  std::string all, last;
  for (const Spot spot : spots) {
    std::string text = spot_text(spot);
    if (text == last) continue;
    if (!all.empty()) all += ' ';
    all += text;
    last = std::move(text);
  }
  return all;
}

std::string pen_text(const Pen& pen) {
  std::string text = fmt::format("stroke=\"{}\" stroke-width=\"{}\"", pen.colour, number(pen.width));
  if (*pen.dashes != '\0') text += fmt::format(" stroke-dasharray=\"{}\"", pen.dashes);
  return text;
}

/// Bytes of the character that starts here. Requires valid UTF-8.
std::size_t character_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::string escaped_character(std::string_view character) {
  const char c = character.front();
  if (character.size() > 1)
    return std::string(character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF" ? kNoCharacter : character);
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\t':
    case '\n':
    case '\r':
      return " ";
    default:
      break;
  }
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? std::string(kNoCharacter) : std::string(1, c);
}

/// In DejaVu Sans, the widest of the fonts that `sans-serif` usually stands for.
double character_width(char c) {
  static constexpr std::string_view kNarrow = "ijl.,:;'|! ()[]/tfrI-\"";
  static constexpr std::string_view kWide = "mwMW@%+=<>";
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80) return byte >= 0xC0 ? 1 : 0;  // the first byte of a character counts for all
  if (kNarrow.find(c) != std::string_view::npos) return 0.38;
  if (kWide.find(c) != std::string_view::npos) return 0.92;
  return c >= 'A' && c <= 'Z' ? 0.7 : 0.63;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8(text);
    for (std::size_t at = 0; at < valid;) {
      const std::size_t size = character_size(text[at]);
      all += escaped_character(text.substr(at, size));
      at += size;
    }
    if (valid == text.size()) break;
    all += kNoCharacter;
    text.remove_prefix(valid + 1);
  }
  return all;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const char c : text) width += character_width(c);
  return width * size;
}

std::string shortened(std::string_view text, double most, double size) {
  if (text_width(text, size) <= most) return std::string(text);
  double width = size;  // of the ellipsis
  std::size_t fits = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
    if (starts && width <= most) fits = at;
    width += size * character_width(text[at]);
  }
  return std::string(text.substr(0, fits)) + "\u2026";
}

SvgCanvas::SvgCanvas(double width, double height, std::string_view title, std::string_view description) {
  body_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "font-family=\"sans-serif\">\n<title>{2}</title>\n<desc>{3}</desc>\n",
      number(width), number(height), xml_text(title), xml_text(description));
  box({.left = 0, .top = 0, .right = width, .bottom = height}, "#ffffff");
}

void SvgCanvas::box(const Frame& frame, const char* fill) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", number(frame.left),
                       number(frame.top), number(frame.right - frame.left), number(frame.bottom - frame.top), fill);
}

void SvgCanvas::stroke(Spot from, Spot to, const Pen& pen) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", number(from.x), number(from.y),
                       number(to.x), number(to.y), pen_text(pen));
}

void SvgCanvas::polyline(const std::vector<Spot>& spots, const Pen& pen) {
  if (spots.size() < 2) return;
  body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" {}/>\n", points_text(spots),
                       pen_text(pen));
}

void SvgCanvas::area(const std::vector<Spot>& spots, const char* fill, double opacity) {
  if (spots.size() < 3) return;
  body_ +=
      fmt::format("<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\"/>\n", points_text(spots), fill, opacity);
}

void SvgCanvas::mark(Spot at, Mark mark, double size, const char* colour) {
  const auto around = [&](const std::vector<Spot>& corners) {
    std::vector<Spot> moved;
    for (const Spot corner : corners) moved.push_back({at.x + size * corner.x, at.y + size * corner.y});
    area(moved, colour, 1);
  };
  switch (mark) {
    case Mark::diamond:
      return around({{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}});
    case Mark::triangle:
      return around({{0, -1.1}, {1.1, 0.9}, {-1.1, 0.9}});
    case Mark::square:
      return around({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}});
    case Mark::disc:
    case Mark::ring:
      break;
  }
  const bool ring = mark == Mark::ring;
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\" {}/>\n", number(at.x), number(at.y),
                       number(size), ring ? "#ffffff" : colour, pen_text({.colour = colour, .width = ring ? 2.0 : 0}));
}

void SvgCanvas::text(Spot at, std::string_view text, const Lettering& lettering) {
  static constexpr std::array kAnchors{"start", "middle", "end"};
  const std::string turn =
      lettering.upwards ? fmt::format(" transform=\"rotate(-90 {} {})\"", number(at.x), number(at.y)) : "";
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}{}>{}</text>\n",
                       number(at.x), number(at.y), number(lettering.size),
                       kAnchors[static_cast<std::size_t>(lettering.anchor)], lettering.colour,
                       lettering.bold ? " font-weight=\"bold\"" : "", turn, xml_text(text));
}

}  // namespace mayfly
