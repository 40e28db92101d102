#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "cloud/catalog.h"
#include "cloud/spot_weather.h"
#include "cloud/tariffs.h"
#include "job/profile.h"
#include "trace/trace.h"

namespace mayfly {

/// What a person at the dashboard may choose from, by name. Nothing else can be asked for: no request names a file.
struct Choices {
  using Files = std::map<std::string, std::filesystem::path>;
  Files profiles{};
  Files catalogs{};
  Files traces{};
  Catalog gpus{};  ///< that every catalogue may name
  WeatherTable weather{};
  Tariffs tariffs{};
};

/// Questions as JSON, answered as the command line answers them. Any thread may ask. Files are read once.
/// docs/dashboard.md
class Answers {
 public:
  explicit Answers(Choices choices) : choices_(std::move(choices)) {}

  /// GET /api/choices. What cannot be read is left out.
  Json choices();
  /// POST /api/plan and /api/replay. An error is the asker's: it names the key, the value seen and the value wanted.
  Result<Json> plan(std::string_view question);
  Result<Json> replay(std::string_view question);

 private:
  template <class T>
  using Loaded = std::map<std::string, std::shared_ptr<const T>>;
  Result<std::shared_ptr<const Profile>> profile(const std::string& name);
  Result<std::shared_ptr<const Catalog>> catalog(const std::string& name);
  Result<std::shared_ptr<const Trace>> trace(const std::string& name);

  const Choices choices_;
  std::mutex mutex_{};  ///< of what was read
  Loaded<Profile> profiles_{};
  Loaded<Catalog> catalogs_{};
  Loaded<Trace> traces_{};
};

}  // namespace mayfly
