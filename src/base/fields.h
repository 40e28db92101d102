#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/units.h"

namespace mayfly {

/// Values of a document that a user may have edited: what is not there or of another kind counts as absent.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  std::optional<double> real(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
  }
  std::int64_t integer(const char* key) const { return whole(key).value_or(0); }
  std::optional<std::int64_t> whole(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_number_integer() ? std::optional(value->get<std::int64_t>()) : std::nullopt;
  }
  std::string text(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  std::optional<Seconds> time(const char* key) const {
    const auto value = real(key);
    return value ? std::optional(Seconds(*value)) : std::nullopt;
  }
  std::optional<Usd> money(const char* key) const {
    const auto value = real(key);
    return value ? std::optional(Usd{*value}) : std::nullopt;
  }
  std::optional<bool> flag(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
  }
  /// Empty where there is none.
  Fields object(const char* key) const {
    static const Json kNone = Json::object();
    const Json* value = find(key);
    return Fields(value != nullptr && value->is_object() ? *value : kNone);
  }
  const Json& list(const char* key) const {
    static const Json kNone = Json::array();
    const Json* value = find(key);
    return value != nullptr && value->is_array() ? *value : kNone;
  }

 private:
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& json_;
};

}  // namespace mayfly
