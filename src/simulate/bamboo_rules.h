#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "simulate/bamboo.h"
#include "simulate/bamboo_events.h"

// The inside of bamboo.h. Model: docs/models.md#bamboo.
namespace mayfly::bamboo {

struct Place {
  int pipeline = 0;
  int stage = 0;
  bool operator==(const Place&) const = default;
};

struct Machine {
  enum class State { starting, ready, running };
  int id = 0;
  Ms since{};
  State state = State::starting;
  std::vector<Place> places{};  ///< two: its own, and the next stage's since that one's machine went
};

/// The profile's figures, as the simulation counts.
struct Setup {
  double batch = 0;
  int stages = 0;
  std::map<int, Ms> steps{};  ///< by data-parallel width
  Ms start{};
  Ms global_rendezvous{};
  Ms local_rendezvous{};
  double slowdown = 1;
  int capacity = 0;
};

class Simulation {
 public:
  explicit Simulation(Setup setup) : setup_(std::move(setup)) {}

  void add_at(Ms time, int machine) { events_.push({time, What::add, machine}); }
  void remove_at(Ms time, int machine) { events_.push({time, What::remove, machine}); }
  /// The machines of the first moment; those of each hour are drawn when it begins.
  void draw_weather(const BambooWeather& weather);

  /// Until `horizon`, or until `steps` steps are done.
  void run(Ms horizon, std::optional<std::int64_t> steps);

  /// The width that the profile has no step time for, where one came up.
  std::optional<int> unknown_width() const { return unknown_width_; }
  BambooRun result(UsdPerHour price) const;

 private:
  enum class Status { stopped, gathering, training };

  void happen(const Event& event);
  void lose(int machine);
  bool fatal_loss(const Machine& lost);
  void make_ready(int machine);
  void gather(What how);
  void gathered(What how);
  void end_step(int rendezvous);
  bool reshape_pays() const;
  void draw_hour();
  std::optional<Ms> moment_within_hour(double probability);
  double machine_ms(Ms from) const;
  void note_moment();

  auto find(int machine) {
    return std::find_if(machines_.begin(), machines_.end(), [machine](const Machine& m) { return m.id == machine; });
  }

  Setup setup_;
  Events events_;
  Ms now_{};
  std::vector<Machine> machines_;  ///< in order of arrival
  Status status_ = Status::stopped;
  std::vector<int> gathering_;
  int rendezvous_ = 0;  ///< how many were completed; steps begun before the last one do not count
  int pipelines_ = 0;
  int depth_ = 0;  ///< stages per pipeline; 0 without pipelines
  int waiting_ = 0;
  Ms step_{};
  struct Loss {
    std::int64_t step = 0;
    Ms time{};
    bool charged = false;  ///< the step in flight has been stretched
  };
  std::optional<Loss> loss_;  ///< the first since the last rendezvous
  std::optional<int> unknown_width_;

  // Random weather.
  std::optional<Rng> rng_;
  std::array<double, 24> addition_{};
  double removal_ = 0;
  int next_machine_ = 0;

  // What is counted.
  BambooRun run_;
  std::optional<Ms> first_step_;
  Ms last_step_{};
  double value_ms_ = 0;                     ///< batch / s per machine, times ms
  std::vector<std::pair<Ms, int>> counts_;  ///< machines from that time on
  std::vector<Ms> removals_;
  Ms lives_{};
  int lived_ = 0;
};

}  // namespace mayfly::bamboo
