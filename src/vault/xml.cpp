#include "vault/xml.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace mayfly {
namespace {

constexpr int kMostLevels = 20;
constexpr std::string_view kBlank = " \t\r\n";

bool ends_name(char c) { return kBlank.find(c) != kBlank.npos || c == '>' || c == '/' || c == '='; }

void append_utf8(std::string& text, unsigned long code) {
  const auto add = [&](unsigned long byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | (code >> 6));
  } else if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    add(0x80 | ((code >> 6) & 0x3f));
  } else {
    add(0xf0 | (code >> 18));
    add(0x80 | ((code >> 12) & 0x3f));
    add(0x80 | ((code >> 6) & 0x3f));
  }
  add(0x80 | (code & 0x3f));
}

/// From its first byte on, by descent; a failure is remembered and ends all of it.
class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& from) : rest_(text), whole_(text.size()), from_(from) {}

  Result<XmlElement> read() {
    XmlElement root;
    skip_prologue();
    if (!problem_ && !rest_.starts_with('<')) reject("no element");
    if (!problem_) element(root, 1);
    if (!problem_ && !trimmed(rest_).empty()) reject("something after the root element");
    if (problem_) return fail("{}: byte {}: {}, want XML", from_, whole_ - rest_.size(), problem_);
    return root;
  }

 private:
  void reject(const char* what) {
    if (problem_ == nullptr) problem_ = what;
  }
  void skip_blank() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlank), rest_.size())); }
  bool skip_to(std::string_view end) {
    const auto at = rest_.find(end);
    if (at == rest_.npos) {
      reject("cut off");
      return false;
    }
    rest_.remove_prefix(at + end.size());
    return true;
  }
  /// `<?xml ...?>` and comments.
  void skip_prologue() {
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
    for (skip_blank(); problem_ == nullptr; skip_blank()) {
      if (rest_.starts_with("<?")) {
        skip_to("?>");
      } else if (rest_.starts_with("<!--")) {
        skip_to("-->");
      } else if (rest_.starts_with("<!")) {
        reject("a document type");
      } else {
        return;
      }
    }
  }
  std::string_view name() {
    const auto end = std::find_if(rest_.begin(), rest_.end(), ends_name);
    const auto text = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (text.empty()) reject("an element without a name");
    rest_.remove_prefix(text.size());
    return text;
  }
  /// Up to `>` or `/>`; true: it is empty.
  bool attributes() {
    while (problem_ == nullptr) {
      skip_blank();
      if (rest_.starts_with("/>")) return rest_.remove_prefix(2), true;
      if (rest_.starts_with(">")) return rest_.remove_prefix(1), false;
      if (rest_.empty()) return reject("cut off"), false;
      name();
      skip_blank();
      if (!rest_.starts_with("=")) return reject("an attribute without a value"), false;
      rest_.remove_prefix(1);
      skip_blank();
      if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\'')) return reject("a value without quotes"), false;
      const char quote = rest_[0];
      rest_.remove_prefix(1);
      skip_to({&quote, 1});
    }
    return false;
  }
  void element(XmlElement& element, int level) {
    if (level > kMostLevels) return reject("too deep");
    rest_.remove_prefix(1);  // <
    const std::string_view full = name();
    if (problem_ != nullptr) return;
    const auto colon = full.find(':');
    element.name = full.substr(colon == full.npos ? 0 : colon + 1);
    if (attributes()) return;
    while (problem_ == nullptr) {
      const auto open = rest_.find('<');
      if (open == rest_.npos) return reject("cut off");
      text(element.text, rest_.substr(0, open));
      rest_.remove_prefix(open);
      if (rest_.starts_with("</")) return close(full);
      content(element, level);
    }
  }
  void content(XmlElement& element, int level) {
    constexpr std::string_view kRaw = "<![CDATA[";
    if (rest_.starts_with("<!--")) {
      skip_to("-->");
    } else if (rest_.starts_with(kRaw)) {
      rest_.remove_prefix(kRaw.size());
      const auto end = rest_.find("]]>");
      element.text += rest_.substr(0, end);
      skip_to("]]>");
    } else if (rest_.starts_with("<!") || rest_.starts_with("<?")) {
      reject("no element");
    } else {
      this->element(element.children.emplace_back(), level + 1);
    }
  }
  void close(std::string_view full) {
    rest_.remove_prefix(2);
    if (!rest_.starts_with(full)) return reject("the end of another element");
    rest_.remove_prefix(full.size());
    skip_blank();
    if (!rest_.starts_with('>')) return reject("the end of another element");
    rest_.remove_prefix(1);
  }
  void text(std::string& out, std::string_view raw) {
    while (problem_ == nullptr) {
      const auto mark = raw.find('&');
      out += raw.substr(0, mark);
      if (mark == raw.npos) return;
      raw.remove_prefix(mark + 1);
      const auto end = raw.find(';');
      if (end == raw.npos) return reject("'&' without ';'");
      entity(out, raw.substr(0, end));
      raw.remove_prefix(end + 1);
    }
  }
  void entity(std::string& out, std::string_view word) {
    constexpr std::array<std::pair<std::string_view, char>, 5> kNamed{
        {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
    for (const auto& [known, letter] : kNamed) {
      if (word == known) return out.push_back(letter);
    }
    const bool hex = word.starts_with("#x");
    const auto digits = word.substr(word.starts_with('#') ? (hex ? 2 : 1) : word.size());
    unsigned long code = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    const bool half = code >= 0xd800 && code < 0xe000;  // of a pair, no character
    if (error != std::errc{} || end != digits.data() + digits.size() || code == 0 || code > 0x10ffff || half)
      return reject("'&...;' of no character");
    append_utf8(out, code);
  }

  std::string_view rest_;
  std::size_t whole_;
  const std::string& from_;
  const char* problem_ = nullptr;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  const auto found =
      std::find_if(children.begin(), children.end(), [&](const XmlElement& one) { return one.name == child; });
  return found == children.end() ? nullptr : &*found;
}

std::string_view XmlElement::text_of(std::string_view child) const {
  const XmlElement* const found = find(child);
  return found == nullptr ? std::string_view() : std::string_view(found->text);
}

Result<XmlElement> parse_xml(std::string_view text, const std::string& from) { return XmlReader(text, from).read(); }

}  // namespace mayfly
