#include "storm/story.h"

#include "base/json.h"
#include "base/text.h"

namespace mayfly::storm {
namespace {

constexpr std::string_view kIndent = "  ";

Json json_of(const Sighting& sight) {
  Json json{{"launch", sight.launch}, {"stage", static_cast<int>(sight.stage)}, {"age_s", sight.age.count()}};
  if (sight.ending) json["ending"] = {{"kind", static_cast<int>(sight.ending->kind)}, {"how", sight.ending->how}};
  return json;
}

Sighting sight_in(const Json& json) {
  Sighting sight{.launch = json.at("launch"),
                 .stage = static_cast<Sighting::Stage>(json.at("stage").get<int>()),
                 .age = Seconds(json.at("age_s").get<double>())};
  if (json.contains("ending"))
    sight.ending = Ending{.kind = static_cast<Ending::Kind>(json["ending"].at("kind").get<int>()),
                          .how = json["ending"].at("how")};
  return sight;
}

FoundCheckpoint found_in(const Json& json) {
  if (json.empty()) return {};
  TrainerState state{.sample = json.at("sample")};
  for (const Json& range : json.at("ledger")) state.ledger.push_back({range[0], range[1]});
  return {.checkpoint = SavedState{json.at("path").get<std::string>(), std::move(state)}};
}

struct Text {
  std::string operator()(const Letter& act) const {
    return fmt::format("letter {} {}", act.to, encoded<ToMember>(act.message));
  }
  std::string operator()(const Cut& act) const { return fmt::format("cut {}", act.worker); }
  std::string operator()(const Ask& act) const {
    std::vector<int> orders;
    for (const Order& order : act.orders) orders.push_back(order.launch);
    return fmt::format("ask orders [{}] tells [{}] ends [{}]", fmt::join(orders, ","), fmt::join(act.tells, ","),
                       fmt::join(act.ends, ","));
  }
  std::string operator()(const Record& act) const {
    return fmt::format("record {} {}", fmt::join(act.lines, " "), act.note);
  }
  std::string operator()(const JournalLine& act) const { return "journal " + act.text; }
  std::string operator()(const Note& act) const { return fmt::format("note {} {}", act.key, act.value); }
  std::string operator()(const Say& act) const { return "say " + act.text; }
  std::string operator()(const Seek&) const { return "seek"; }
  std::string operator()(const Publish& act) const { return "publish " + act.checkpoint.path; }
  std::string operator()(const List&) const { return "list"; }
  std::string operator()(const Close&) const { return "close"; }
};

/// Up to the first space, which is taken off with it.
std::string_view next_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(text.size(), word.size() + 1));
  return word;
}

/// A controller's process without its world.
class Stage {
 public:
  Stage(const RunInputs& inputs, Expectation expected) : inputs_(inputs), expected_(expected) {}

  bool follow(std::string_view line) {
    const Seconds time(parse_number(next_word(line)).value_or(0));
    if (line == "starts") {
      session_ = std::make_unique<Session>(inputs_, [this](const MachineRole&) { return expected_; });
      session_->restore(lines_, notes_);
      session_->acts();
      return true;
    }
    if (line == "dies") {
      session_.reset();
      wanted_.clear();
      done_ = 0;
      return true;
    }
    if (!session_ || !tell(*session_, time, line)) return false;
    wanted_ = session_->acts();
    done_ = 0;
    return true;
  }

  /// The next of what is wanted, done; nothing where nothing is left.
  std::optional<std::string> next() {
    if (done_ == wanted_.size()) return std::nullopt;
    const Act& act = wanted_[done_++];
    if (const auto* record = std::get_if<Record>(&act)) {
      lines_.push_back(journal_line(record->event.time, record->event.event));
      if (!record->key.empty()) notes_[record->key] = record->note;
    }
    if (const auto* line = std::get_if<JournalLine>(&act)) lines_.push_back(line->text);
    if (const auto* note = std::get_if<Note>(&act)) notes_[note->key] = note->value;
    return text_of(act);
  }

 private:
  const RunInputs& inputs_;
  Expectation expected_;
  std::unique_ptr<Session> session_{};
  std::vector<std::string> lines_{};
  Session::Notes notes_{};
  std::vector<Act> wanted_{};
  std::size_t done_ = 0;
};

}  // namespace

std::string text_of(const Sighting& sight) { return json_of(sight).dump(); }

std::string text_of(const std::vector<Sighting>& sights) {
  Json list = Json::array();
  for (const Sighting& sight : sights) list.push_back(json_of(sight));
  return list.dump();
}

std::string text_of(const FoundCheckpoint& found) {
  if (!found.checkpoint) return "{}";
  Json ledger = Json::array();
  for (const SampleRange& range : found.checkpoint->state.ledger) ledger.push_back({range.first, range.count});
  return Json{{"path", found.checkpoint->path.string()}, {"sample", found.checkpoint->state.sample}, {"ledger", ledger}}
      .dump();
}

std::string text_of(const Act& act) { return std::visit(Text{}, act); }

bool tell(Session& session, Seconds now, std::string_view what) {
  const std::string_view kind = next_word(what);
  if (kind == "begin") return session.begin(now), true;
  if (kind == "pass") return session.pass(now), true;
  if (kind == "signal")
    return session.signal(now, what == "interrupt" ? Session::Signal::interrupt : Session::Signal::terminate), true;
  const bool of_one = kind == "connected" || kind == "hear" || kind == "closed";
  const WorkerId worker = of_one ? static_cast<WorkerId>(parse_integer(next_word(what)).value_or(0)) : 0;
  if (kind == "closed") return session.closed(now, worker), true;
  if (of_one || kind == "hello" || kind == "published") {
    const auto message = decoded<ToController>(what);
    if (!message) return false;
    const auto* word = std::get_if<FromMember>(&*message);
    if (kind == "hear") return word != nullptr && (session.hear(now, worker, *word), true);
    if (const auto* written = word != nullptr ? std::get_if<CheckpointWritten>(word) : nullptr)
      return session.published(now, *written, {}), true;
    const auto* hello = std::get_if<Hello>(&*message);
    if (hello == nullptr) return false;
    if (kind == "connected") return session.connected(now, worker, *hello), true;
    // Whether it is welcome is seen by what follows.
    [[maybe_unused]] const auto welcome = session.hello(now, *hello);
    return true;
  }
  const Json json = Json::parse(what, nullptr, false);
  if (json.is_discarded()) return false;
  if (kind == "seen") return session.seen(now, sight_in(json)), true;
  if (kind == "sought") return session.sought(now, found_in(json)), true;
  if (kind != "listed") return false;
  std::vector<Sighting> all;
  for (const Json& one : json) all.push_back(sight_in(one));
  return session.listed(now, all), true;
}

std::string replay(const std::vector<std::string>& story, const RunInputs& inputs, const Expectation& expected) {
  Stage stage(inputs, expected);
  for (std::size_t i = 0; i < story.size(); ++i) {
    const std::string_view line = story[i];
    if (line.starts_with('#')) continue;
    if (line.starts_with(kIndent)) {
      const std::string wanted = stage.next().value_or("nothing");
      if (wanted != line.substr(kIndent.size()))
        return fmt::format("line {}: {}\nand now: {}", i + 1, line.substr(kIndent.size()), wanted);
      continue;
    }
    // Whoever dies leaves things undone.
    const auto more = line.ends_with(" dies") ? std::nullopt : stage.next();
    if (more) return fmt::format("line {}: now, before it: {}", i + 1, *more);
    if (!stage.follow(line)) return fmt::format("line {} cannot be told: {}", i + 1, line);
  }
  return {};
}

}  // namespace mayfly::storm
