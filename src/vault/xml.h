#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mayfly {

/// One element of a small document; attributes are left out: no answer of an object store needs them.
struct XmlElement {
  std::string name{};  ///< without the prefix of its namespace
  std::string text{};  ///< directly in it, with what `&...;` stands for
  std::vector<XmlElement> children{};

  /// The first child of this name; none: nullptr.
  const XmlElement* find(std::string_view child) const;
  /// The text of that child; empty where there is none.
  std::string_view text_of(std::string_view child) const;
};

/// The root element. No document type, so that nothing is ever expanded; at most 20 levels. `from` is for messages.
Result<XmlElement> parse_xml(std::string_view text, const std::string& from);

}  // namespace mayfly
