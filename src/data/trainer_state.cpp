#include "data/trainer_state.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/document.h"
#include "base/json.h"

namespace mayfly {
namespace {

constexpr std::string_view kFormat = "mayfly-checkpoint/2";
/// Does not say which run and data it is of.
constexpr std::string_view kOlderFormat = "mayfly-checkpoint/1";
/// The last key; its value covers every byte before it.
constexpr std::string_view kSeal = "\"xxh3\": \"";

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

template <class Number>
Number whole(Section& section, std::string_view key) {
  const std::string text = section.text(key);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc{} && end == text.data() + text.size() && !(value < Number{});
  if (section.ok() && !good) section.reject(key, fmt::format("'{}', want a whole number from 0", text));
  return good ? value : Number{};
}

std::uint64_t hex_number(Section& section, std::string_view key) {
  const std::string text = section.text(key);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (section.ok() && (error != std::errc{} || end != text.data() + text.size() || text.size() != 16))
    section.reject(key, fmt::format("'{}', want 16 hexadecimal digits", text));
  return value;
}

/// Empty: not known.
std::string text_or_empty(Section& section, std::string_view key) {
  const Value* value = section.raw(key);
  if (value != nullptr && value->kind == Value::Kind::scalar) return value->scalar;
  section.reject(key, "want a text");
  return {};
}

StateFile read_state(Section& root, bool older) {
  StateFile content;
  auto& state = content.state;
  state.job = root.text("job");
  state.sample = whole<std::int64_t>(root, "sample");
  state.step = whole<std::int64_t>(root, "step");
  // A loss that is no number, because the training diverged, is written as null.
  state.loss = root.maybe_number("loss").value_or(std::numeric_limits<double>::quiet_NaN());
  state.lineage.seed = whole<std::uint64_t>(root, "seed");
  if (!older) state.lineage.run = text_or_empty(root, "run");
  if (!older) state.lineage.data = text_or_empty(root, "data");
  for (Section& range : root.list("ledger")) {
    state.ledger.push_back({whole<std::int64_t>(range, "first"), whole<std::int64_t>(range, "count")});
    range.finish();
  }
  if (auto ledger = Ledger::restored(state.ledger); root.ok() && !ledger) root.reject("ledger", ledger.error().message);
  Section files = root.section("files");
  for (auto& [name, file] : files.each()) {
    content.files[name] = {.bytes = whole<std::uint64_t>(file, "bytes"), .xxh3 = hex_number(file, "xxh3")};
    file.finish();
  }
  root.raw("xxh3");
  return content;
}

}  // namespace

std::string state_text(const StateFile& content) {
  const TrainerState& state = content.state;
  Json ledger = Json::array();
  for (const SampleRange& range : state.ledger) ledger.push_back({{"first", range.first}, {"count", range.count}});
  Json files = Json::object();
  for (const auto& [name, seal] : content.files) files[name] = {{"bytes", seal.bytes}, {"xxh3", hex(seal.xxh3)}};
  const Json json{
      {"format", kFormat},          {"job", state.job},       {"run", state.lineage.run}, {"seed", state.lineage.seed},
      {"data", state.lineage.data}, {"sample", state.sample}, {"step", state.step},       {"loss", state.loss},
      {"ledger", ledger},           {"files", files}};
  std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n  ";
  return text + fmt::format("{}{}\"\n}}\n", kSeal, hex(xxh3_of(text)));
}

Result<StateFile> parse_state(std::string_view text, const std::string& file) {
  const auto seal = text.rfind(kSeal);
  // Another format may be sealed otherwise; what it is comes first, and names of files may hold anything.
  const auto named = text.substr(std::min(text.find("mayfly-checkpoint/"), text.size()));
  const bool older = named.starts_with(kOlderFormat);
  const bool ours = older || named.starts_with(kFormat);
  if (ours && (seal == std::string_view::npos ||
               text.substr(seal) != fmt::format("{}{}\"\n}}\n", kSeal, hex(xxh3_of(text.substr(0, seal))))))
    return fail("{}: damaged: its checksum does not fit", file);
  return read_document(text, file, older ? kOlderFormat : kFormat,
                       [older](Section& root) { return read_state(root, older); });
}

}  // namespace mayfly
