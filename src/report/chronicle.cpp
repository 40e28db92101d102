#include "report/chronicle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fields.h"
#include "base/text.h"
#include "base/untrusted.h"

namespace mayfly {
namespace {

constexpr std::size_t kMostGone = 400;
constexpr std::size_t kMostHappenings = 500;
constexpr std::size_t kMostMarks = 4000;
constexpr std::size_t kMostValidations = 2000;

}  // namespace

void Chronicle::add(std::string_view line) {
  if (trimmed(line).empty()) return;
  ++lines_;
  const Json json = parsed_json(line);
  if (!json.is_object()) {
    ++broken_;
    return;
  }
  const Fields fields(json);
  if (json.contains("format")) {
    job_ = fields.text("job");
    policy_ = fields.text("policy");
    standing_ = UsdPerHour{fields.real("standing_usd_per_hour").value_or(0)};
    priced_ = standing_.value > 0;
    rate_ = standing_;
    return;
  }
  const auto time = fields.real("t_s");
  if (!time || *time < 0) {
    ++broken_;
    return;
  }
  if (json.contains("ignored")) return;
  advance(std::max(now_, Seconds(*time)));
  if (const std::string kind = fields.text("event"); !kind.empty()) return event(fields, kind);
  if (const std::string kind = fields.text("command"); !kind.empty()) return command(fields, kind);
  if (json.contains("reading")) return reading(fields);
  if (const std::string words = fields.text("remark"); !words.empty()) tell("remark", words);
}

int Chronicle::members_present() const {
  return static_cast<int>(
      std::count_if(members_.begin(), members_.end(), [&](const auto& name) { return present_.contains(name); }));
}

void Chronicle::advance(Seconds to) {
  const double span = (to - now_).count();
  if (span <= 0) return;
  const auto held = static_cast<double>(present_.size());
  const double busy = members_present();
  for (const auto& [name, machine] : present_) use(machine, span);
  if (members_.empty()) {
    usage_.idle += held * span;
  } else {
    double changing = training_ ? 0 : span;
    if (!training_ && ready_ && *ready_ <= to) {
      changing = std::max(0.0, (*ready_ - now_).count());
      begin_training(now_ + Seconds(changing));
    }
    usage_.idle += (held - busy) * span;
    usage_.reconfigure += busy * changing;
    in_hand_ += busy * (span - changing);
  }
  cost_ += rate_ * (to - now_);
  now_ = to;
  if (priced_) spent_.add(now_.count(), cost_.value);
}

void Chronicle::use(const Tenancy& machine, double seconds) {
  if (machine.market != "spot") return;
  SpotUse& spot = spot_use_[{machine.type, machine.zone}];
  spot.seconds += seconds;
  spot.paid += machine.price * Seconds(seconds);
}

void Chronicle::begin_training(Seconds at) {
  training_ = true;
  progress_.add(at.count(), samples_);
  if (open_.empty()) return;
  // Several lost at once share what it took to go on.
  const double share = 1.0 / static_cast<double>(open_.size());
  for (const OpenLoss& loss : std::exchange(open_, {})) {
    if (happenings_.empty() || loss.id < happenings_.front().id) continue;
    Happening& happening = happenings_[static_cast<std::size_t>(loss.id - happenings_.front().id)];
    happening.stall = at - loss.time;
    if (!priced_) continue;
    const double machines = std::max<double>(1, static_cast<double>(present_.size()));
    const Usd in_vain = rate_ * Seconds((usage_.lost - loss.lost) / machines);
    happening.cost = (rate_ * *happening.stall + in_vain) * share;
  }
}

void Chronicle::event(const Fields& line, const std::string& kind) {
  const std::string worker = line.text("worker");
  if (kind == "joined") return joined(line);
  if (kind == "notice") {
    const double left = line.real("left_s").value_or(0);
    if (const auto machine = present_.find(worker); machine != present_.end()) machine->second.notice = now_;
    return tell(kind, fmt::format("{} will be taken in {}", worker, format_duration(Seconds(std::max(0.0, left)))), {},
                worker);
  }
  if (kind == "lost") return left(worker, line.flag("returns").value_or(false) ? "left out" : "lost");
  if (kind == "committed") return commit(line.real("samples").value_or(0));
  if (kind == "checkpointed") {
    checkpointed_ = line.real("sample").value_or(checkpointed_);
    return tell(kind, fmt::format("saved: everything before sample {:.0f}", checkpointed_));
  }
  if (kind == "rolled-back") return roll_back(line.real("sample").value_or(checkpointed_));
  if (kind == "state-lost") return tell(kind, "the servers that held what was trained are gone");
  if (kind == "priced") return priced(line);
  if (kind == "charged") return charged(line);
  if (kind == "expected") {
    const auto ready = line.real("ready_s");
    if (!ready || members_.empty()) return;
    ready_ = Seconds(*ready);
    if (!training_ && *ready_ <= now_) begin_training(now_);
    return;
  }
  if (kind == "estimated") target_ = line.real("samples");
}

void Chronicle::priced(const Fields& line) {
  const auto price = line.real("usd_per_hour");
  if (!price) return;
  const std::string market = line.text("market").empty() ? "spot" : line.text("market");
  for (auto& [name, machine] : present_) {
    if (machine.market == market && machine.type == line.text("type") && machine.zone == line.text("zone"))
      machine.price = UsdPerHour{*price};
  }
  count_machines();
}

void Chronicle::charged(const Fields& line) {
  const Usd cost{std::max(0.0, line.real("cost_usd").value_or(0))};
  cost_ += cost;
  if (line.text("market") == "spot") {
    SpotUse& spot = spot_use_[{line.text("type"), line.text("zone")}];
    spot.seconds += std::max(0.0, line.real("time_s").value_or(0));
    spot.paid += cost;
  }
  tell("charged", fmt::format("{:.4f} USD for a machine that never joined: {}", cost.value, line.text("type")));
}

void Chronicle::joined(const Fields& line) {
  const std::string worker = line.text("worker");
  // After the end it is sent back, and the account is closed.
  if (worker.empty() || !finish_.empty()) return;
  Tenancy machine{.name = worker,
                  .type = line.text("type"),
                  .zone = line.text("zone"),
                  .market = line.text("market"),
                  .price = UsdPerHour{line.real("usd_per_hour").value_or(0)},
                  .from = now_};
  if (const auto since = line.real("paid_since_s")) {
    const double before = std::max(0.0, now_.count() - *since);
    cost_ += machine.price * Seconds(before);
    use(machine, before);
  }
  priced_ = priced_ || machine.price.value > 0;
  const Kind kind{machine.type, machine.market};
  if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.push_back(kind);
  tell("joined",
       fmt::format("{} joins: {}{}{}", worker, machine.type, machine.market.empty() ? "" : ", " + machine.market,
                   machine.price.value > 0 ? fmt::format(", {:.3g} USD/h", machine.price.value) : ""),
       {}, worker);
  ++machines_total_;
  present_.insert_or_assign(worker, std::move(machine));
  count_machines();
}

void Chronicle::left(const std::string& worker, const char* how) {
  const auto machine = present_.find(worker);
  if (machine == present_.end()) return;
  Tenancy tenancy = std::move(machine->second);
  present_.erase(machine);
  tenancy.to = now_;
  tenancy.end = how;
  gone_.push_back(std::move(tenancy));
  if (gone_.size() > kMostGone) gone_.pop_front();
  if (std::string_view(how) == "lost") {
    ++preemptions_;
    // What a run's journal says of it in words stands just before.
    std::string words = fmt::format("{} is lost", worker);
    if (!happenings_.empty() && happenings_.back().kind == "remark" &&
        happenings_.back().text.starts_with(worker + " lost")) {
      words = happenings_.back().text;
      happenings_.pop_back();
      --next_id_;
    }
    tell(how, std::move(words), {}, worker);
    if (members_.contains(worker)) open_.push_back({next_id_ - 1, now_, usage_.lost});
  }
  count_machines();
}

void Chronicle::commit(double samples) {
  if (!training_ && !members_.empty()) begin_training(now_);
  usage_.useful += std::exchange(in_hand_, 0);
  samples_ += samples;
  progress_.add(now_.count(), samples_);
  if (marks_.size() >= kMostMarks) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < marks_.size(); i += 2) marks_[kept++] = marks_[i];
    marks_.resize(kept);
  }
  marks_.push_back({samples_, usage_.useful});
}

void Chronicle::roll_back(double sample) {
  tell("rolled-back",
       fmt::format("goes on from sample {:.0f}, {:.0f} are trained again", sample, std::max(0.0, samples_ - sample)));
  if (sample >= samples_) return;
  redone_ += samples_ - sample;
  while (!marks_.empty() && marks_.back().sample > sample) marks_.pop_back();
  const Mark before = marks_.empty() ? Mark{} : marks_.back();
  // As much of the stretch that `sample` lies in as comes before it.
  const double stretch = samples_ - before.sample;
  const double kept =
      before.useful + (stretch > 0 ? (sample - before.sample) / stretch * (usage_.useful - before.useful) : 0);
  usage_.lost += usage_.useful - kept;
  usage_.useful = kept;
  samples_ = sample;
  progress_.add(now_.count(), samples_);
}

void Chronicle::command(const Fields& line, const std::string& kind) {
  const std::string why = line.text("why");
  const std::string worker = line.text("worker");
  if (kind == "assign" || kind == "pause") {
    usage_.lost += std::exchange(in_hand_, 0);  // the step in hand counts for nothing
    if (training_) progress_.add(now_.count(), samples_);
    members_.clear();
    training_ = false;
    ready_.reset();
  }
  if (kind == "assign") {
    for (const Json& member : line.list("members")) {
      if (member.is_string()) members_.insert(member.get<std::string>());
    }
    const double data_parallel = line.real("data_parallel").value_or(0);
    const double stages = line.real("stages").value_or(0);
    shapes_.add(now_.count(), {data_parallel, stages, line.real("extra").value_or(0)});
    tell(kind,
         stages > 1 ? fmt::format("{:.0f} pipelines of {:.0f} stages train", data_parallel, stages)
                    : fmt::format("{} machine{} train{}", members_.size(), members_.size() == 1 ? "" : "s",
                                  members_.size() == 1 ? "s" : ""),
         why);
  } else if (kind == "pause") {
    shapes_.add(now_.count(), {0, 0, 0});
    tell(kind, "nobody trains", why);
  } else if (kind == "drain") {
    tell(kind, fmt::format("{} finishes and hands over", worker), why, worker);
  } else if (kind == "acquire") {
    const double count = line.real("count").value_or(0);
    tell(kind, fmt::format("{:.0f} more wanted, {}", count, line.text("market")), why);
  } else if (kind == "release") {
    tell(kind, fmt::format("{} is given back", worker), why, worker);
    left(worker, "released");
  } else if (kind == "checkpoint") {
    tell(kind, "the state is to be saved", why);
  } else if (kind == "finish") {
    finish_ = why;
    standing_ = {};  // what stood goes with it
    shapes_.add(now_.count(), {0, 0, 0});
    members_.clear();
    tell(kind, why == "target" ? "the target is reached" : "the end: the budget is spent");
  }
  count_machines();
}

void Chronicle::reading(const Fields& line) {
  const auto loss = line.real("loss");
  if (!loss) return;
  if (line.text("reading") == "validation") {
    if (validations_.size() >= kMostValidations) validations_.erase(validations_.begin() + 1);
    validations_.push_back({now_, *loss, line.real("accuracy")});
  } else {
    losses_.add(now_.count(), *loss);
  }
}

void Chronicle::count_machines() {
  std::vector<double> row(kinds_.size() + 1, 0);
  row[0] = members_present();
  rate_ = standing_;
  for (const auto& [name, machine] : present_) {
    rate_ += machine.price;
    const auto kind = std::find(kinds_.begin(), kinds_.end(), Kind{machine.type, machine.market});
    row[static_cast<std::size_t>(kind - kinds_.begin()) + 1] += 1;
  }
  counts_.add(now_.count(), row);
  rates_.add(now_.count(), {rate_.value});
}

void Chronicle::tell(const std::string& kind, std::string text, std::string why, std::string worker) {
  happenings_.push_back({.id = next_id_++,
                         .time = now_,
                         .kind = kind,
                         .text = std::move(text),
                         .why = std::move(why),
                         .worker = std::move(worker)});
  if (happenings_.size() > kMostHappenings) happenings_.pop_front();
}

}  // namespace mayfly
