#include "web/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/untrusted.h"
#include "control/policy.h"
#include "report/bill_json.h"
#include "report/plan_json.h"
#include "report/purse.h"
#include "report/replay_json.h"
#include "trace/load.h"

namespace mayfly {
namespace {

using Clock = std::chrono::steady_clock;

std::string shown(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40); }

/// Of any number of a question: beyond that the planner would only prove for long that it cannot be done.
constexpr double kMost = 1e12;

/// The keys of a question. The first thing wrong with it is kept; what is asked for afterwards is empty.
class Question {
 public:
  Question(std::string_view text, const std::vector<std::string>& known) : json_(parsed_json(text)) {
    if (!json_.is_object()) {
      object("want a JSON object");
      json_ = Json::object();
    }
    for (const auto& [key, value] : json_.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        object(fmt::format("unknown key {}{}", shown(key), did_you_mean(key, known)));
    }
  }

  const std::optional<Error>& wrong() const { return wrong_; }
  void object(std::string what) {
    if (!wrong_) wrong_ = Error{std::move(what)};
  }

  std::optional<double> number(const char* key, double least) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number() && value->get<double>() >= least && value->get<double>() <= kMost)
      return value->get<double>();
    object(fmt::format("{}: {}, want a number from {:g} to {:g}", key, shown(*value), least, kMost));
    return std::nullopt;
  }

  /// A name; `otherwise` where it is left out, unless that is empty.
  std::string word(const char* key, const std::string& otherwise = {}) {
    const Json* value = find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    if (value != nullptr || otherwise.empty())
      object(fmt::format("{}: {}, want a name", key, value == nullptr ? "missing" : shown(*value)));
    return otherwise;
  }

  std::vector<std::string> words(const char* key) {
    std::vector<std::string> list;
    const Json* value = find(key);
    if (value == nullptr) return list;
    const bool right = value->is_array() &&
                       std::all_of(value->begin(), value->end(), [](const Json& item) { return item.is_string(); });
    if (!right) object(fmt::format("{}: {}, want a list of words", key, shown(*value)));
    if (right) list = value->get<std::vector<std::string>>();
    return list;
  }

 private:
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  Json json_;
  std::optional<Error> wrong_{};
};

constexpr double kLeastSeconds = 1e-3;
constexpr double kLeastUsd = 1e-9;

Target target_in(Question& question) {
  constexpr double kSmallest = 1e-12;
  const auto loss = question.number("loss", kSmallest);
  const auto epochs = question.number("epochs", kSmallest);
  const auto steps = question.number("steps", kSmallest);
  if (loss.has_value() + epochs.has_value() + steps.has_value() != 1)
    question.object("want exactly one of loss, epochs and steps");
  if (loss) return ToLoss{*loss};
  if (epochs) return ForEpochs{*epochs};
  return ForSteps{steps.value_or(1)};
}

PlanRequest plan_request(Question& question) {
  PlanRequest request{.target = target_in(question)};
  if (const auto deadline = question.number("deadline_s", kLeastSeconds)) request.deadline = Seconds(*deadline);
  if (const auto budget = question.number("budget_usd", kLeastUsd)) request.budget = Usd{*budget};
  const auto markets = question.words("markets");
  if (!markets.empty()) request.markets.clear();
  for (const std::string& name : markets) {
    const auto market = parse_market(name);
    if (!market) question.object("markets: " + market.error().message);
    if (market) request.markets.insert(*market);
  }
  return request;
}

std::vector<PolicyName> policies_in(Question& question) {
  std::vector<PolicyName> policies;
  for (const std::string& name : question.words("policies")) {
    const auto policy = policy_named(name);
    if (!policy)
      question.object(fmt::format("policies: {} is none{}", shown(name), did_you_mean(name, policy_names())));
    if (policy && std::find(policies.begin(), policies.end(), *policy) == policies.end()) policies.push_back(*policy);
  }
  if (policies.empty())
    question.object(fmt::format("policies: missing, want some of {}", fmt::join(policy_names(), ", ")));
  return policies;
}

ReplayQuestion replay_question(Question& question) {
  ReplayQuestion asked{.policies = policies_in(question), .options = {.milestones = true}};
  Promise& promise = asked.options.promise;
  promise.samples = question.number("samples", 1);
  if (const auto deadline = question.number("deadline_s", kLeastSeconds)) promise.deadline = Seconds(*deadline);
  if (const auto budget = question.number("budget_usd", kLeastUsd)) promise.budget = Usd{*budget};
  const bool by_deadline =
      std::find(asked.policies.begin(), asked.policies.end(), PolicyName::deadline) != asked.policies.end();
  if (by_deadline && !(promise.samples && promise.deadline))
    question.object("policies: deadline needs samples and deadline_s");
  return asked;
}

/// Of a longer trace an answer would take minutes.
constexpr double kMostIntervals = 200'000;

template <class T, class Load>
Result<std::shared_ptr<const T>> loaded(std::mutex& mutex, std::map<std::string, std::shared_ptr<const T>>& kept,
                                        const Choices::Files& files, const char* what, const std::string& name,
                                        const Load& load) {
  const auto file = files.find(name);
  if (file == files.end()) {
    std::vector<std::string> names;
    for (const auto& [known, path] : files) names.push_back(known);
    return fail("{}: {} is none of those here{}", what, shown(name), did_you_mean(name, names));
  }
  const std::lock_guard lock(mutex);
  auto& entry = kept[name];
  if (!entry) {
    auto read = load(file->second);
    if (!read) return fail("{}: {} cannot be read", what, shown(name));
    entry = std::make_shared<const T>(*std::move(read));
  }
  return entry;
}

/// Losses worth asking for: from what takes long to what is reached soon, by one machine of the profile.
Json losses_json(const Profile& profile) {
  if (!profile.loss || profile.types.empty()) return {};
  const LossConditions alone{.batch = profile.types.begin()->second.batch, .workers = 1, .sync = profile.sync};
  const double from = loss_after(*profile.loss, alone, 1e5);
  const double to = loss_after(*profile.loss, alone, 1e3);
  if (!std::isfinite(from) || !std::isfinite(to) || from <= 0 || to <= from) return {};
  return {{"from", from}, {"to", to}};
}

}  // namespace

Result<std::shared_ptr<const Profile>> Answers::profile(const std::string& name) {
  return loaded(mutex_, profiles_, choices_.profiles, "profile", name,
                [](const auto& path) { return load_profile(path); });
}

Result<std::shared_ptr<const Catalog>> Answers::catalog(const std::string& name) {
  return loaded(mutex_, catalogs_, choices_.catalogs, "catalog", name,
                [this](const auto& path) { return load_catalog(path, choices_.gpus); });
}

Result<std::shared_ptr<const Trace>> Answers::trace(const std::string& name) {
  return loaded(mutex_, traces_, choices_.traces, "trace", name, [](const auto& path) { return load_trace(path); });
}

Json Answers::choices() {
  Json profiles = Json::array(), catalogs = Json::array(), traces = Json::array();
  for (const auto& [name, path] : choices_.profiles) {
    const auto known = profile(name);
    if (!known) continue;
    profiles.push_back({{"name", name},
                        {"losses", losses_json(**known)},
                        {"epochs", !missing_for(ForEpochs{1}, **known)},
                        {"pipeline", (*known)->pipeline.has_value()}});
  }
  for (const auto& [name, path] : choices_.catalogs) catalogs.push_back(name);
  for (const auto& [name, path] : choices_.traces) {
    if (const auto known = trace(name)) traces.push_back({{"name", name}, {"duration_s", (*known)->duration.count()}});
  }
  return {{"profiles", std::move(profiles)},
          {"catalogs", std::move(catalogs)},
          {"traces", std::move(traces)},
          {"policies", policy_names()}};
}

Result<Json> Answers::plan(std::string_view text) {
  Question question(text, {"profile", "catalog", "loss", "epochs", "steps", "deadline_s", "budget_usd", "markets"});
  const std::string profile_name = question.word("profile");
  const std::string catalog_name = question.word("catalog", "default");
  PlanRequest request = plan_request(question);
  if (question.wrong()) return unexpected(*question.wrong());
  const auto job = profile(profile_name);
  if (!job) return unexpected(job.error());
  const auto offers = catalog(catalog_name);
  if (!offers) return unexpected(offers.error());
  const auto start = Clock::now();
  const PlanWeather weather{.usual = choices_.weather};
  Profile trained = **job;
  promise_in(weather, {}, **offers, trained, request);
  const Purse purse(trained, {}, **offers, choices_.tariffs, weather.usual.start);
  purse.charge(request);
  const auto answer = make_plan(trained, **offers, request);
  if (!answer) return unexpected(answer.error());
  const PlanContext context{.profile = trained,
                            .catalog = **offers,
                            .request = request,
                            .took = Seconds(Clock::now() - start),
                            .weather = &weather};
  Json document = std::visit([&](const auto& result) { return plan_json(context, result); }, *answer);
  const auto* plan = std::get_if<Plan>(&*answer);
  if (const auto bill = plan != nullptr ? purse.bill(context, *plan) : std::nullopt) put_bill(document, *bill);
  return document;
}

Result<Json> Answers::replay(std::string_view text) {
  Question question(text, {"profile", "catalog", "trace", "policies", "samples", "deadline_s", "budget_usd"});
  const std::string profile_name = question.word("profile");
  const std::string catalog_name = question.word("catalog", "default");
  const std::string trace_name = question.word("trace");
  ReplayQuestion asked = replay_question(question);
  if (question.wrong()) return unexpected(*question.wrong());
  const auto job = profile(profile_name);
  if (!job) return unexpected(job.error());
  const auto offers = catalog(catalog_name);
  if (!offers) return unexpected(offers.error());
  const auto weather = trace(trace_name);
  if (!weather) return unexpected(weather.error());
  asked.options.interval = std::max(Seconds(60), (*weather)->gap);
  if ((*weather)->duration / asked.options.interval > kMostIntervals)
    return fail("trace: longer than {:g} intervals, ask the command line", kMostIntervals);
  const auto start = Clock::now();
  const auto answer = replay_answer(**job, **offers, **weather, asked);
  if (!answer) return unexpected(answer.error());
  return replay_json(**job, **weather, asked, *answer, Seconds(Clock::now() - start));
}

}  // namespace mayfly
