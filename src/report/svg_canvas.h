#pragma once

#include <string>
#include <string_view>
#include <vector>

// Standalone SVG: a viewBox, so that a page or a paper chooses the size, and nothing from elsewhere: no styles,
// scripts, fonts or ids, so that several pictures may stand in one page.
namespace mayfly {

/// Text of an element or of a quoted attribute. Characters that XML 1.0 cannot hold, and bytes that are no UTF-8,
/// become U+FFFD; line breaks and tabs become blanks, as every text here is one line.
std::string xml_text(std::string_view text);

/// About how wide a text is drawn, in the units of `size`. Fonts differ, so it errs on the wide side.
double text_width(std::string_view text, double size);
/// Cut where it would get wider than `most`, with an ellipsis for the rest.
std::string shortened(std::string_view text, double most, double size);

/// In units of the viewBox; y grows downwards.
struct Spot {
  double x = 0;
  double y = 0;
};
struct Frame {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

/// Colours and dashes are literals of this program, never from a document: they are not escaped.
struct Pen {
  const char* colour = "#000000";
  double width = 1;
  const char* dashes = "";  ///< "6 3": six drawn, three not; "" is solid
};

enum class Anchor { start, middle, end };
struct Lettering {
  double size = 15;
  Anchor anchor = Anchor::start;
  const char* colour = "#222222";
  bool bold = false;
  bool upwards = false;  ///< turned left by a quarter, around the spot
};

enum class Mark { disc, ring, diamond, triangle, square };

/// Elements in the order they are drawn. Spots must be finite.
class SvgCanvas {
 public:
  /// A white page. `title` and `description` are what a screen reader says.
  SvgCanvas(double width, double height, std::string_view title, std::string_view description);

  void box(const Frame& frame, const char* fill);
  void stroke(Spot from, Spot to, const Pen& pen);
  /// Fewer than two spots draw nothing.
  void polyline(const std::vector<Spot>& spots, const Pen& pen);
  /// Closed and filled. `opacity` from 0 to 1.
  void area(const std::vector<Spot>& spots, const char* fill, double opacity);
  void mark(Spot at, Mark mark, double size, const char* colour);
  void text(Spot at, std::string_view text, const Lettering& lettering);

  /// The whole document.
  std::string document() const { return body_ + "</svg>\n"; }

 private:
  std::string body_;
};

}  // namespace mayfly
