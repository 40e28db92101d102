#include "vault/aws_files.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace mayfly {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string setting_name(std::string_view text) {
  std::string name(trimmed(text));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

/// After a blank, `#` and `;` begin a comment.
std::string_view without_comment(std::string_view value) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    if ((value[i] == '#' || value[i] == ';') && is_blank(value[i - 1])) return trimmed(value.substr(0, i));
  }
  return trimmed(value);
}

}  // namespace

Result<std::map<std::string, AwsSettings>> parse_aws_file(std::string_view text, const std::string& file) {
  std::map<std::string, AwsSettings> sections;
  AwsSettings* section = nullptr;
  std::string group;  // the setting without value whose own settings follow, further in
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const auto content = trimmed(line);
    if (content.empty() || content[0] == '#' || content[0] == ';') continue;
    if (content[0] == '[') {
      const auto end = content.find(']');
      if (end == content.npos) return fail("{}:{}: want ']' after the section's name", file, number);
      // Words in a name are parted by one blank.
      std::string name;
      for (const char c : trimmed(content.substr(1, end - 1))) {
        if (!is_blank(c) || !is_blank(name.back())) name += is_blank(c) ? ' ' : c;
      }
      section = &sections[name];
      group.clear();
      continue;
    }
    const auto equals = content.find('=');
    if (equals == content.npos || equals == 0 || section == nullptr)
      return fail("{}:{}: want [SECTION] or NAME = VALUE", file, number);
    const std::string name = setting_name(content.substr(0, equals));
    const auto value = without_comment(content.substr(equals + 1));
    const bool nested = is_blank(line[0]) && !group.empty();
    (*section)[nested ? fmt::format("{}.{}", group, name) : name] = std::string(value);
    if (!nested) group = value.empty() ? name : "";
  }
  return sections;
}

Result<std::vector<std::string>> command_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;  // a word may be empty where it is quoted
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (is_blank(c) || c == '\n')) {
      if (std::exchange(inside, false)) words.push_back(std::exchange(word, {}));
      continue;
    }
    inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      if (++i == line.size()) return fail("a backslash at the end");
      // Between double quotes it is itself but before these two.
      if (quote == '"' && line[i] != '"' && line[i] != '\\') word += c;
      word += line[i];
    } else {
      word += c;
    }
  }
  if (quote != 0) return fail("want another {}", quote);
  if (inside) words.push_back(word);
  return words;
}

}  // namespace mayfly
