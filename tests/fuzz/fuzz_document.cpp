#include <algorithm>
#include <set>

#include "base/document.h"
#include "fuzz/fuzz.h"

namespace {

using mayfly::Value;
using mayfly::fuzz::require;

/// Every value is of one kind and stands on a line of the text; no key stands twice.
void check_tree(const Value& value, int lines) {
  require(value.line >= 1 && value.line <= lines, "a value stands on a line of the text");
  require(value.kind == Value::Kind::scalar || value.kind == Value::Kind::null || value.scalar.empty(),
          "only a scalar has a text");
  require(value.kind == Value::Kind::list || value.items.empty(), "only a list has items");
  require(value.kind == Value::Kind::map || value.entries.empty(), "only a mapping has entries");
  std::set<std::string_view> keys;
  for (const auto& [key, entry] : value.entries) {
    require(keys.insert(key).second, "a key stands once");
    require(value.find(key) == &entry, "find gives the entry of the key");
    check_tree(entry, lines);
  }
  for (const auto& item : value.items) check_tree(item, lines);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = mayfly::fuzz::text_of(data, size);
  const auto root = mayfly::parse_document(text, mayfly::fuzz::kFile);
  if (!root) {
    mayfly::fuzz::check_message(root.error());
    return 0;
  }
  // YAML ends lines with \n, \r\n or \r.
  const auto ends = std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; });
  check_tree(*root, static_cast<int>(ends) + 1);
  return 0;
}
