#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "web/answers.h"

namespace mayfly {

struct DashboardOptions {
  std::filesystem::path root{};  ///< the folder of a run, or one with runs in it
  std::string host = "127.0.0.1";
  int port = 0;         ///< 0: any that is free
  std::string token{};  ///< what every request must know; empty only on loopback
  Choices choices{};
  const Catalog* catalog = nullptr;  ///< for prices on demand; outlives the dashboard
};

/// Serves the page, the API and /metrics from threads of its own; only reads what the runs write, so whatever is asked
/// of it no run is disturbed. At most so many connections are served at a time, the others wait: docs/dashboard.md.
class Dashboard {
 public:
  /// Listens when this returns.
  static Result<Dashboard> start(DashboardOptions options);
  Dashboard(Dashboard&&) noexcept;
  Dashboard& operator=(Dashboard&&) = delete;
  ~Dashboard();

  int port() const;

 private:
  struct Parts;
  explicit Dashboard(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

}  // namespace mayfly
