#include "base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace mayfly {
namespace {

/// Enough for any format here; a hostile file does not get to fill the stack.
constexpr std::size_t kDeepestJson = 64;
constexpr std::size_t kKeysCompared = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Where the number that starts at `at` ends, by JSON's grammar; `at` itself if none does.
std::size_t number_end(std::string_view text, std::size_t at) {
  const auto digits = [&](std::size_t from) {
    while (from < text.size() && is_digit(text[from])) ++from;
    return from;
  };
  const std::size_t start = at < text.size() && text[at] == '-' ? at + 1 : at;
  std::size_t end = digits(start);
  if (end == start || (text[start] == '0' && end > start + 1)) return at;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = digits(end + 1);
    if (fraction == end + 1) return at;
    end = fraction;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    std::size_t sign = end + 1;
    if (sign < text.size() && (text[sign] == '+' || text[sign] == '-')) ++sign;
    const std::size_t exponent = digits(sign);
    if (exponent == sign) return at;
    end = exponent;
  }
  return end;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xc0 | code >> 6), put(0x80 | (code & 0x3f));
  if (code < 0x10000) return put(0xe0 | code >> 12), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
  put(0xf0 | code >> 18), put(0x80 | (code >> 12 & 0x3f)), put(0x80 | (code >> 6 & 0x3f)), put(0x80 | (code & 0x3f));
}

std::optional<unsigned> hex4(std::string_view text) {
  unsigned code = 0;
  text = text.substr(0, 4);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
  if (text.size() < 4 || error != std::errc{} || end != text.data() + text.size()) return {};
  return code;
}

}  // namespace

JsonReader::JsonReader(std::string_view text, const std::string& file, int line)
    : text_(text), file_(file), line_(line) {
  if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
}

void JsonReader::skip_blanks() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
  }
}

void JsonReader::reject(std::string_view what) {
  if (!error_) error_ = Error{fmt::format("{}:{}: {}", file_, line_, what)};
}

std::string JsonReader::seen() {
  switch (peek()) {
    case Kind::end:
      return "the file ends";
    case Kind::list:
      return "a list";
    case Kind::object:
      return "an object";
    default:
      break;
  }
  constexpr std::size_t kShown = 60;
  const bool quote = text_[at_] == '"';
  const auto stop = quote ? text_.find('"', at_ + 1) : text_.find_first_of(",]}: \t\r\n", at_ + 1);
  auto word = text_.substr(at_, stop == std::string_view::npos ? stop : stop - at_ + (quote ? 1 : 0));
  if (word.size() > kShown) return fmt::format("'{}...'", word.substr(0, kShown));
  return fmt::format("'{}'", word);
}

void JsonReader::unwanted(std::string_view wanted) {
  if (error_) return;
  const auto what = seen();
  reject(fmt::format("{}, want {}", what, wanted));
}

JsonReader::Kind JsonReader::peek() {
  if (error_) return Kind::end;
  skip_blanks();
  if (at_ >= text_.size()) return Kind::end;
  switch (text_[at_]) {
    case '"':
      return Kind::text;
    case '[':
      return Kind::list;
    case '{':
      return Kind::object;
    case 't':
    case 'f':
      return Kind::flag;
    case 'n':
      return Kind::null;
    default:
      return Kind::number;
  }
}

double JsonReader::number(std::string_view wanted) {
  if (peek() != Kind::number) return unwanted(wanted), 0;
  const std::size_t end = number_end(text_, at_);
  if (end == at_) return unwanted(wanted), 0;
  double value = 0;
  const auto parsed = std::from_chars(text_.data() + at_, text_.data() + end, value);
  if (parsed.ec != std::errc{} || !std::isfinite(value)) return unwanted(wanted), 0;
  at_ = end;
  return value;
}

int JsonReader::integer(int least, int most, std::string_view wanted) {
  if (peek() != Kind::number) return unwanted(wanted), least;
  const std::size_t before = at_;
  const double value = number(wanted);
  if (!ok()) return least;
  if (value < least || value > most || value != std::floor(value)) {
    at_ = before;
    unwanted(wanted);
    return least;
  }
  return static_cast<int>(value);
}

bool JsonReader::flag(std::string_view wanted) {
  if (peek() == Kind::flag) {
    for (const std::string_view word : {"true", "false"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "true";
    }
  }
  unwanted(wanted);
  return false;
}

bool JsonReader::unescape(std::string_view raw) {
  buffer_.clear();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      buffer_ += raw[i];
      continue;
    }
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    if (++i >= raw.size()) return false;
    if (raw[i] == 'u') {
      const auto high = hex4(raw.substr(i + 1));
      if (!high) return false;
      i += 4;
      unsigned code = *high;
      if (code >= 0xd800 && code < 0xe000) {
        const auto low = raw.substr(i + 1).starts_with("\\u") ? hex4(raw.substr(i + 3)) : std::nullopt;
        if (code >= 0xdc00 || !low || *low < 0xdc00 || *low >= 0xe000) return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (*low - 0xdc00);
        i += 6;
      }
      append_utf8(buffer_, code);
    } else if (const auto name = kNames.find(raw[i]); name != std::string_view::npos) {
      buffer_ += kValues[name];
    } else {
      return false;
    }
  }
  return true;
}

std::string_view JsonReader::quoted() {
  const std::size_t start = at_ + 1;
  std::size_t end = start;
  bool escapes = false;
  for (; end < text_.size() && text_[end] != '"'; ++end) {
    if (static_cast<unsigned char>(text_[end]) < 0x20) return reject("a quote that is not closed on its line"), "";
    if (text_[end] == '\\') {
      escapes = true;
      ++end;
    }
  }
  if (end >= text_.size()) return reject("a quote that is not closed"), "";
  const auto raw = text_.substr(start, end - start);
  at_ = end + 1;
  if (valid_utf8(raw) < raw.size()) return reject("a text that is not UTF-8"), "";
  if (!escapes) return raw;
  if (!unescape(raw)) return reject("an escape that is not a character"), "";
  return buffer_;
}

std::string_view JsonReader::text(std::string_view wanted) {
  if (peek() != Kind::text) return unwanted(wanted), "";
  return quoted();
}

bool JsonReader::begin(char open, char close, std::string_view wanted) {
  if (peek() == Kind::end || text_[at_] != open) return unwanted(wanted), false;
  if (depth_ >= kDeepestJson) return reject(fmt::format("nested more than {} deep", kDeepestJson)), false;
  ++at_;
  if (levels_.size() == depth_) levels_.emplace_back();
  Level& level = levels_[depth_++];
  level.close = close;
  level.first = true;
  level.keys.clear();
  return true;
}

void JsonReader::begin_list(std::string_view wanted) { begin('[', ']', wanted); }
void JsonReader::begin_object(std::string_view wanted) { begin('{', '}', wanted); }

bool JsonReader::next(char close) {
  if (peek() == Kind::end || depth_ == 0 || levels_[depth_ - 1].close != close) {
    unwanted(fmt::format("'{}'", close));
    return false;
  }
  Level& level = levels_[depth_ - 1];
  if (text_[at_] == close) {
    ++at_;
    --depth_;
    return false;
  }
  if (!level.first) {
    if (text_[at_] != ',') return unwanted(fmt::format("',' or '{}'", close)), false;
    ++at_;
    skip_blanks();
  }
  level.first = false;
  return true;
}

bool JsonReader::next_item() { return next(']'); }

std::optional<std::string_view> JsonReader::next_key() {
  if (!next('}')) return {};
  const auto key = text("a key in quotes");
  if (!ok()) return {};
  auto& keys = levels_[depth_ - 1].keys;
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
    reject(fmt::format("key '{}' stands twice", key.substr(0, 60)));
    return {};
  }
  if (keys.size() < kKeysCompared) keys.emplace_back(key);
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != ':') return unwanted("':'"), std::nullopt;
  ++at_;
  return key;
}

void JsonReader::skip() {
  switch (peek()) {
    case Kind::list:
      begin_list();
      while (next_item()) skip();
      return;
    case Kind::object:
      begin_object();
      while (next_key()) skip();
      return;
    case Kind::text:
      text("a text");
      return;
    case Kind::flag:
      flag("true or false");
      return;
    case Kind::null:
      if (!text_.substr(at_).starts_with("null")) return unwanted("a value");
      at_ += 4;
      return;
    default:
      number("a value");
  }
}

void JsonReader::finish() {
  if (ok() && peek() != Kind::end) unwanted("nothing after the document");
}

}  // namespace mayfly
