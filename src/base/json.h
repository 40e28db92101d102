#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/units.h"

namespace mayfly {

/// Keys stay in the order they were written, so output reads the way its documentation does.
using Json = nlohmann::ordered_json;

/// null where there is none; times in seconds, money in USD.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
inline Json or_null(const std::optional<Seconds>& time) { return time ? Json(time->count()) : Json(); }
inline Json or_null(const std::optional<Usd>& money) { return money ? Json(money->value) : Json(); }

}  // namespace mayfly
