#include "cloud/csv_rows.h"

#include <algorithm>

namespace mayfly {

CsvRows::CsvRows(std::string_view text, const std::string& file) : text_(text), file_(file) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

Result<bool> CsvRows::next(std::vector<std::string>& fields) {
  while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) line_ += text_[at_++] == '\n' ? 1 : 0;
  if (at_ == text_.size()) return false;
  row_line_ = line_;
  fields.clear();
  while (true) {
    std::string& field = fields.emplace_back();
    const bool closed = !text_.substr(at_).starts_with('"') || unquote(field);
    if (!closed) return fail("{}:{}: a quote is not closed", file_, row_line_);
    const auto end = std::min(text_.find_first_of(",\n", at_), text_.size());
    field += text_.substr(at_, end - at_);
    at_ = std::min(end + 1, text_.size());
    if (end < text_.size() && text_[end] == ',') continue;
    if (field.ends_with('\r')) field.pop_back();
    if (end < text_.size()) ++line_;
    return true;
  }
}

bool CsvRows::unquote(std::string& field) {
  ++at_;
  while (true) {
    const auto quote = text_.find('"', at_);
    if (quote == std::string_view::npos) return false;
    const auto part = text_.substr(at_, quote - at_);
    line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
    field += part;
    at_ = quote + 1;
    if (!text_.substr(at_).starts_with('"')) return true;
    field += text_[at_++];
  }
}

}  // namespace mayfly
