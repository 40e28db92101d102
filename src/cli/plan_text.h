#pragma once

#include <string>

#include "base/json.h"
#include "cli/risk_flags.h"
#include "plan/planner.h"

namespace mayfly::cli {

/// What an answer is about; it outlives the answer.
struct Context {
  const Profile& profile;
  const Catalog& catalog;
  const PlanRequest& request;
  Seconds took{};
  const PlanWeather* weather = nullptr;  ///< where a trace was given
};

Json plan_json(const Context& context, const Plan& plan);
Json plan_json(const Context& context, const Infeasible& answer);

/// For people: the considered clusters with the chosen one marked, then why.
std::string plan_text(const Context& context, const Plan& plan, bool colour);
std::string plan_text(const Context& context, const Infeasible& answer, bool colour);

}  // namespace mayfly::cli
