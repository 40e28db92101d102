// Grammar: docs/formats.md#scenario
#include "faults/scenario.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace mayfly {
namespace {

/// One line, cut into words that are taken one by one. The first that does not fit is remembered.
class Words {
 public:
  explicit Words(std::string_view line) {
    for (const auto word : split(line, ' ')) {
      if (!trimmed(word).empty()) words_.push_back(trimmed(word));
    }
  }
  bool done() const { return next_ >= words_.size(); }
  const std::string& wrong() const { return wrong_; }
  std::string_view word(std::string_view wanted) {
    if (done()) {
      reject("nothing", wanted);
      return {};
    }
    return words_[next_++];
  }
  std::string_view optional_word() { return done() ? std::string_view() : words_[next_++]; }
  double number(std::string_view wanted) { return parsed(word(wanted), wanted); }
  int worker() {
    const auto text = word("a worker: w1");
    const auto id = text.starts_with('w') ? parse_integer(text.substr(1)) : std::nullopt;
    if (!id) reject(text, "a worker: w1");
    return id.value_or(0);
  }
  /// `2x3:14.5`: two pipelines of three stages, 14.5 samples/s; `2x3+1:16`: one of them a stage longer.
  std::pair<Shape, double> shape() {
    constexpr std::string_view kWanted = "a shape: PIPELINESxSTAGES[+EXTRA]:SAMPLES_PER_S";
    const auto text = word(kWanted);
    const auto cross = text.find('x');
    const auto colon = text.find(':');
    if (cross == text.npos || colon == text.npos || colon < cross) {
      reject(text, kWanted);
      return {};
    }
    const auto width = parse_integer(text.substr(0, cross));
    const auto plus = std::min(text.find('+'), colon);
    const auto depth = parse_integer(text.substr(cross + 1, plus - cross - 1));
    const auto extra = plus == colon ? 0 : parse_integer(text.substr(plus + 1, colon - plus - 1));
    if (width.value_or(0) < 1 || depth.value_or(0) < 1 || extra.value_or(-1) < 0) reject(text, kWanted);
    return {{width.value_or(1), depth.value_or(1), extra.value_or(0)}, parsed(text.substr(colon + 1), kWanted)};
  }
  double parsed(std::string_view text, std::string_view wanted) {
    const auto number = parse_number(text);
    if (!number) reject(text, wanted);
    return number.value_or(0);
  }
  void reject(std::string_view seen, std::string_view wanted) {
    if (wrong_.empty()) wrong_ = fmt::format("{}, want {}", seen, wanted);
  }

 private:
  std::vector<std::string_view> words_{};
  std::size_t next_ = 0;
  std::string wrong_{};
};

Joined read_joined(Words& words) {
  Joined event{.worker = words.worker()};
  const auto market = words.word("spot or on-demand");
  if (market != name(Market::spot) && market != name(Market::on_demand)) words.reject(market, "spot or on-demand");
  event.market = market == name(Market::spot) ? Market::spot : Market::on_demand;
  event.type = words.word("an instance type");
  event.price = {words.number("USD/h")};
  event.zone = words.optional_word();
  if (event.zone == "-") event.zone.clear();
  if (!words.done()) event.since = Seconds(words.number("seconds"));
  return event;
}

Charged read_charged(Words& words) {
  Charged event{.type = std::string(words.word("an instance type"))};
  event.cost = {words.number("USD")};
  event.zone = words.optional_word();
  return event;
}

Priced read_priced(Words& words) {
  Priced event{.type = std::string(words.word("an instance type"))};
  event.price = {words.number("USD/h")};
  event.zone = words.optional_word();
  if (event.zone == "-") event.zone.clear();
  const auto market = words.optional_word();
  if (!market.empty() && market != name(Market::on_demand)) words.reject(market, "on-demand or nothing");
  if (!market.empty()) event.market = Market::on_demand;
  return event;
}

Event read_event(Words& words) {
  const auto word = words.word("an event");
  const auto seconds = [&] { return Seconds(words.number("seconds")); };
  const auto generation = [&] { return static_cast<std::int64_t>(words.number("a generation")); };
  if (word == "joined") return read_joined(words);
  if (word == "notice") {
    const WorkerId worker = words.worker();
    return Notice{worker, seconds()};
  }
  if (word == "lost") return Lost{words.worker()};
  if (word == "committed") {
    StepCommitted event{.generation = generation()};
    event.first_sample = words.number("the first sample");
    event.samples = words.number("samples");
    return event;
  }
  if (word == "checkpointed") return CheckpointDone{words.number("a sample")};
  if (word == "rolled-back") return RolledBack{generation()};
  if (word == "state-lost") return StateLost{generation()};
  if (word == "priced") return read_priced(words);
  if (word == "charged") return read_charged(words);
  if (word == "expected") return Expected{seconds()};
  if (word == "estimated") return Estimated{words.number("samples")};
  if (word == "measured") return Measured{words.number("a ratio of speeds")};
  if (word != "tick")
    words.reject(word,
                 "joined, notice, lost, committed, checkpointed, rolled-back, state-lost, priced, charged, expected, "
                 "estimated, measured or tick");
  return Tick{};
}

Offer read_offer(Words& words) {
  Offer offer{.type = std::string(words.word("an instance type"))};
  offer.rate = {words.number("USD/h")};
  offer.limit = static_cast<int>(std::clamp(words.number("machines"), 0.0, 1e6));
  offer.zone = words.optional_word();
  return offer;
}

/// A line that does not start with a time.
void read_setting(Scenario& scenario, std::string_view word, Words& words) {
  Promise& promise = scenario.options.promise;
  if (word == "policy") {
    const auto policy = words.word("a policy");
    if (!policy_named(policy)) words.reject(policy, fmt::format("{}", fmt::join(policy_names(), ", ")));
    scenario.policy = policy_named(policy).value_or(scenario.policy);
  } else if (word == "shapes") {
    while (!words.done()) {
      const auto [shape, speed] = words.shape();
      scenario.shapes.push_back(shape);
      scenario.speeds.push_back(speed);
    }
  } else if (word == "change_s") {
    scenario.change = Seconds(words.number("seconds"));
  } else if (word == "settle_s") {
    scenario.options.settle = Seconds(words.number("seconds"));
  } else if (word == "samples") {
    promise.samples = words.number("samples");
  } else if (word == "deadline_s") {
    promise.deadline = Seconds(words.number("seconds"));
  } else if (word == "budget_usd") {
    promise.budget = Usd{words.number("USD")};
  } else if (word == "offer") {
    scenario.offers.push_back(read_offer(words));
  } else if (word == "finish") {
    const auto how = words.word("at-once or saved");
    if (how != "at-once" && how != "saved") words.reject(how, "at-once or saved");
    scenario.options.save_at_target = how == "saved";
  } else if (word == "until_s") {
    scenario.until = Seconds(words.number("seconds"));
  } else if (word == "ticks") {
    const auto how = words.word("due or written");
    if (how != "due" && how != "written") words.reject(how, "due or written");
    scenario.ticks_written = how == "written";
  } else {
    words.reject(word,
                 "a time, or policy, shapes, change_s, settle_s, samples, deadline_s, budget_usd, offer, finish, "
                 "until_s, ticks");
  }
}

struct EventText {
  static std::string zone(const std::string& zone) { return zone.empty() ? "" : " " + zone; }
  std::string operator()(const Joined& e) const {
    const std::string line = fmt::format("joined w{} {} {} {}", e.worker, name(e.market), e.type, e.price.value);
    if (!e.since) return line + zone(e.zone);
    return fmt::format("{} {} {}", line, e.zone.empty() ? "-" : e.zone, e.since->count());
  }
  std::string operator()(const Notice& e) const { return fmt::format("notice w{} {}", e.worker, e.left.count()); }
  std::string operator()(const Lost& e) const { return fmt::format("lost w{}", e.worker); }
  std::string operator()(const StepCommitted& e) const {
    return fmt::format("committed {} {} {}", e.generation, e.first_sample, e.samples);
  }
  std::string operator()(const CheckpointDone& e) const { return fmt::format("checkpointed {}", e.sample); }
  std::string operator()(const RolledBack& e) const { return fmt::format("rolled-back {}", e.generation); }
  std::string operator()(const StateLost& e) const { return fmt::format("state-lost {}", e.generation); }
  std::string operator()(const Priced& e) const {
    if (e.market == Market::spot) return fmt::format("priced {} {}{}", e.type, e.price.value, zone(e.zone));
    return fmt::format("priced {} {} {} on-demand", e.type, e.price.value, e.zone.empty() ? "-" : e.zone);
  }
  std::string operator()(const Charged& e) const {
    return fmt::format("charged {} {}{}", e.type, e.cost.value, zone(e.zone));
  }
  std::string operator()(const Expected& e) const { return fmt::format("expected {}", e.ready.count()); }
  std::string operator()(const Estimated& e) const { return fmt::format("estimated {}", e.samples); }
  std::string operator()(const Measured& e) const { return fmt::format("measured {}", e.ratio); }
  std::string operator()(const Tick&) const { return "tick"; }
};

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

/// A command of a journal, or an event that was ignored, as people read it; nothing for other lines.
std::string transcript_line(const std::string& record) {
  const Json json = Json::parse(record);
  std::string line = fmt::format("{} ", json["t_s"].get<double>());
  if (json.contains("ignored")) {
    const auto told = event_in(record);
    return line + fmt::format("ignored {}: {}\n", std::visit(EventText{}, told->event), text_of(json["ignored"]));
  }
  if (!json.contains("command")) return {};
  line += text_of(json["command"]);
  for (const auto& [key, value] : json.items()) {
    if (key == "t_s" || key == "command" || key == "why" || key == "members") continue;
    line += key == "worker" || key == "market" ? " " + text_of(value) : fmt::format(" {}={}", key, text_of(value));
  }
  if (json.contains("members")) {
    line += " to";
    for (const Json& member : json["members"]) line += " " + text_of(member);
  }
  if (json.contains("why")) line += ": " + text_of(json["why"]);
  return line + "\n";
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text, const std::string& file) {
  Scenario scenario;
  int number = 0;
  for (const auto row : split(text, '\n')) {
    ++number;
    const auto line = trimmed(row);
    if (line.empty() || line.starts_with('#')) continue;
    if (line == "----") break;
    Words words(line);
    const auto first = words.word("a line");
    if (const auto time = parse_number(first)) {
      if (!scenario.events.empty() && Seconds(*time) < scenario.events.back().time)
        words.reject(first, "times that do not go back");
      scenario.events.push_back({Seconds(*time), read_event(words)});
    } else {
      read_setting(scenario, first, words);
    }
    if (!words.done()) words.reject(words.word(""), "the end of the line");
    if (!words.wrong().empty()) return fail("{}:{}: {}", file, number, words.wrong());
  }
  if (scenario.shapes.empty()) return fail("{}: no shapes", file);
  for (const Shape& shape : scenario.shapes)
    scenario.options.most_machines = std::max(scenario.options.most_machines, shape.machines());
  return scenario;
}

std::string scenario_text(const Scenario& scenario) {
  const Promise& promise = scenario.options.promise;
  std::string text = fmt::format("policy {}\nshapes", name(scenario.policy));
  for (std::size_t at = 0; at < scenario.shapes.size(); ++at) {
    const Shape& shape = scenario.shapes[at];
    const std::string extra = shape.extra > 0 ? fmt::format("+{}", shape.extra) : "";
    text += fmt::format(" {}x{}{}:{}", shape.data_parallel, shape.stages, extra, scenario.speeds[at]);
  }
  text += fmt::format("\nchange_s {}\nsettle_s {}\n", scenario.change.count(), scenario.options.settle.count());
  if (promise.samples) text += fmt::format("samples {}\n", *promise.samples);
  if (promise.deadline) text += fmt::format("deadline_s {}\n", promise.deadline->count());
  if (promise.budget) text += fmt::format("budget_usd {}\n", promise.budget->value);
  for (const Offer& offer : scenario.offers)
    text += fmt::format("offer {} {} {}{}\n", offer.type, offer.rate.value, offer.limit,
                        offer.zone.empty() ? "" : " " + offer.zone);
  if (scenario.options.save_at_target) text += "finish saved\n";
  if (scenario.until) text += fmt::format("until_s {}\n", scenario.until->count());
  if (scenario.ticks_written) text += "ticks written\n";
  for (const TimedEvent& told : scenario.events)
    text += fmt::format("{} {}\n", told.time.count(), std::visit(EventText{}, told.event));
  return text;
}

Controller make_controller(const Scenario& scenario, const Shapes& shapes, const MigrationCosts& costs) {
  Controller controller(shapes,
                        make_policy(scenario.policy, shapes, costs,
                                    {.most_machines = scenario.options.most_machines, .offers = scenario.offers}),
                        scenario.options);
  return controller;
}

std::string transcript(const Scenario& scenario) {
  const Shapes shapes(scenario.shapes, scenario.speeds);
  const MigrationCosts costs = MigrationCosts::constant(shapes, scenario.change);
  Controller controller = make_controller(scenario, shapes, costs);
  controller.keep_journal(true);
  std::string text;
  std::optional<Seconds> wake;
  const auto tell = [&](Seconds now, const Event& event) {
    const Reaction reaction = controller.step(now, event);
    for (const std::string& record : reaction.records) text += transcript_line(record);
    for (const Command& command : reaction.commands) {
      if (const auto* asked = std::get_if<Wake>(&command)) wake = asked->at;
    }
  };
  const auto tick_before = [&](Seconds end) {
    while (!scenario.ticks_written && wake && *wake < end) {
      const Seconds now = *wake;
      wake.reset();
      tell(now, Tick{});
    }
  };
  for (const auto& [time, event] : scenario.events) {
    tick_before(time);
    tell(time, event);
  }
  if (scenario.events.empty()) return text;
  const Seconds end = scenario.until.value_or(scenario.events.back().time);
  tick_before(end + Seconds(1e-9));
  return text;
}

}  // namespace mayfly
