#include "base/untrusted.h"

#include "base/file.h"

namespace mayfly {
namespace {

constexpr int kDeepestYaml = 100;

/// Whether brackets outside of strings are open deeper than that.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepestYaml) return true;
  }
  return false;
}

}  // namespace

Json parsed_json(std::string_view text) {
  if (too_deep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

Result<std::string> load_own_text(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error)))
    return fail("{}: not there, or no regular file", path.string());
  return load_text(path);
}

}  // namespace mayfly
