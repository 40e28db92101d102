#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "report/trail.h"

namespace mayfly {

class Fields;

/// A machine for as long as the journal knows it.
struct Tenancy {
  std::string name{};
  std::string type{};
  std::string zone{};
  std::string market{};
  UsdPerHour price{};
  Seconds from{};
  std::optional<Seconds> to{};  ///< nothing: still there
  std::string end{};            ///< lost, released; empty: still there
  std::optional<Seconds> notice{};
};

/// Something that happened or was decided, for people.
struct Happening {
  std::int64_t id = 0;  ///< counts from 0 over the whole journal
  Seconds time{};
  std::string kind{};  ///< the journal's word for the event or command; remark
  std::string text{};
  std::string why{};               ///< the controller's reason
  std::string worker{};            ///< whom it is about
  std::optional<Seconds> stall{};  ///< of a loss: until training went on
  std::optional<Usd> cost{};       ///< of a loss: what was paid for standing still and for work done in vain
};

/// Machine-seconds, as the journal tells them.
struct Usage {
  double useful = 0;
  double reconfigure = 0;  ///< from an assignment to its first step, or to when the change was expected to be over
  double lost = 0;         ///< trained and thrown away
  double idle = 0;         ///< held, without work
  double total() const { return useful + reconfigure + lost + idle; }
};

/// What a journal has told so far, of a run or a replay: it cannot tell which. Lines are added one by one, and what is
/// kept does not grow with their number. docs/formats.md#view
class Chronicle {
 public:
  /// One line. What is no line of a journal is counted and passed over.
  void add(std::string_view line);

  std::int64_t lines() const { return lines_; }
  std::int64_t broken() const { return broken_; }
  const std::string& job() const { return job_; }
  const std::string& policy() const { return policy_; }  ///< of a replay
  Seconds time() const { return now_; }
  double samples() const { return samples_; }
  std::optional<double> target() const { return target_; }
  const std::string& finish() const { return finish_; }  ///< target or budget; empty: not yet
  int preemptions() const { return preemptions_; }
  double redone() const { return redone_; }
  Usd cost() const { return cost_; }
  UsdPerHour rate() const { return rate_; }
  bool priced() const { return priced_; }
  const Usage& usage() const { return usage_; }
  /// Of the spot market, by type and zone: what would have cost more on demand.
  struct SpotUse {
    double seconds = 0;  ///< of machines
    Usd paid{};
  };
  using SpotUses = std::map<std::pair<std::string, std::string>, SpotUse>;
  const SpotUses& spot_use() const { return spot_use_; }

  /// Those that are gone, the latest 400 at most, in the order they went.
  const std::deque<Tenancy>& gone() const { return gone_; }
  const std::map<std::string, Tenancy>& present() const { return present_; }
  std::int64_t machines_total() const { return machines_total_; }
  /// The latest 500.
  const std::deque<Happening>& happenings() const { return happenings_; }
  std::int64_t happenings_total() const { return next_id_; }

  const Trail& progress() const { return progress_; }
  const Trail& losses() const { return losses_; }
  const Trail& spent() const { return spent_; }
  const Stairs& rates() const { return rates_; }
  const Stairs& shapes() const { return shapes_; }  ///< data_parallel, stages, extra
  const Stairs& counts() const { return counts_; }  ///< machines that train, then by kind()
  struct Kind {
    std::string type{};
    std::string market{};
    bool operator==(const Kind&) const = default;
  };
  const std::vector<Kind>& kinds() const { return kinds_; }
  struct Validation {
    Seconds time{};
    double loss = 0;
    std::optional<double> accuracy{};
  };
  const std::vector<Validation>& validations() const { return validations_; }

 private:
  void advance(Seconds to);
  void use(const Tenancy& machine, double seconds);
  void priced(const Fields& line);
  void charged(const Fields& line);
  void event(const Fields& line, const std::string& kind);
  void command(const Fields& line, const std::string& kind);
  void reading(const Fields& line);
  void joined(const Fields& line);
  void left(const std::string& worker, const char* how);
  void commit(double samples);
  void roll_back(double sample);
  void begin_training(Seconds at);
  void tell(const std::string& kind, std::string text, std::string why = {}, std::string worker = {});
  void count_machines();
  int members_present() const;

  std::int64_t lines_ = 0;
  std::int64_t broken_ = 0;
  std::string job_{};
  std::string policy_{};
  Seconds now_{};
  double samples_ = 0;
  double checkpointed_ = 0;
  std::optional<double> target_{};
  std::string finish_{};
  int preemptions_ = 0;
  double redone_ = 0;

  std::map<std::string, Tenancy> present_{};
  std::deque<Tenancy> gone_{};
  std::int64_t machines_total_ = 0;
  std::vector<Kind> kinds_{};
  SpotUses spot_use_{};
  UsdPerHour standing_{};  ///< paid whatever machines there are
  UsdPerHour rate_{};
  Usd cost_{};
  bool priced_ = false;

  std::set<std::string> members_{};  ///< assigned; empty: no worker trains
  bool training_ = false;            ///< the assignment's first step is done, or should be by now
  std::optional<Seconds> ready_{};   ///< when the change under way should be over
  double in_hand_ = 0;               ///< machine-seconds since the last commit
  Usage usage_{};
  struct Mark {
    double sample = 0;
    double useful = 0;
  };
  std::vector<Mark> marks_{};  ///< what it took to get to a sample, to take it back
  struct OpenLoss {
    std::int64_t id = 0;
    Seconds time{};
    double lost = 0;  ///< machine-seconds thrown away before
  };
  std::vector<OpenLoss> open_{};  ///< losses after which nothing was trained yet

  std::deque<Happening> happenings_{};
  std::int64_t next_id_ = 0;

  Trail progress_{};
  Trail losses_{};
  Trail spent_{};
  Stairs rates_{};
  Stairs shapes_{};
  Stairs counts_{};
  std::vector<Validation> validations_{};
};

}  // namespace mayfly
