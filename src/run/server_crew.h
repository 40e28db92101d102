#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "job/train_spec.h"
#include "run/crew.h"
#include "run/unreached.h"

namespace mayfly {

/// Workers that push to and pull from parameter servers. A formation is an arrangement of servers: which one holds
/// which shard. Workers come and go within it and never wait for each other, unless the job says so (bsp, ssp): each
/// has a lease of its own. What a worker pushed is staged at every server before it says so, so a commit record alone
/// decides whether it counts, and a worker that is lost afterwards takes nothing along.
///
/// When a server goes, another of its shard (a standby) holds the same, and a new formation begins there: what was in
/// hand is computed again, what was committed stays. Without one no server holds the state: stateless(). A server that
/// is known to go soon stays until another holds its shard and no worker has anything in hand.
class ServerCrew final : public Crew {
 public:
  struct Options {
    ServersSpec servers{};
    int batch = 32;
    bool sum = false;  ///< losses are added up: every gradient counts as it is
  };
  /// `formation`: the last number that was ever used.
  ServerCrew(Options options, std::int64_t formation) : options_(std::move(options)), formation_(formation) {
    options_.servers.count = std::max(1, options_.servers.count);
  }

  bool has_servers() const override { return true; }
  std::vector<WorkerId> servers() const override;
  void server_ready(WorkerId server, const std::string& address) override;
  void server_leaves(WorkerId server) override;
  std::vector<WorkerId> last_holders() const override;
  void part() override;
  void set_batch(WorkerId worker, int batch) override { batches_[worker] = batch; }

  using Crew::arrived;
  void arrived(WorkerId worker, const Held& held) override;
  void gone(WorkerId worker) override;
  bool assign(const Assign& command) override;
  void roll_back(const std::string& checkpoint, std::int64_t sample, Ledger ledger) override;
  void pause() override;
  bool form_again() override;
  std::optional<Step> hear(WorkerId from, const FromMember& message) override;
  void commit() override;
  using Crew::go_on;
  void go_on(std::int64_t end, bool evaluate) override;
  bool write_checkpoint() override;
  std::vector<Letter> letters() override;
  std::string record() const override;
  void restore(const std::string& record, std::int64_t committed) override;

  std::int64_t formation() const override { return formation_; }
  std::int64_t sample() const override { return sample_; }
  bool broken() const override { return broken_; }
  bool training() const override { return phase_ == Phase::training; }
  bool complete() const override { return phase_ != Phase::waiting; }
  bool stateless() const override;
  bool resting() const override { return leases_.empty(); }
  bool mid_step() const override { return false; }
  const std::vector<WorkerId>& ranks() const override { return members_; }
  bool stands(WorkerId worker) const override;
  bool alive(WorkerId worker) const override;
  std::int64_t place_of(WorkerId worker) const override;
  std::vector<WorkerId> apart() const override;
  void set_aside(WorkerId worker) override { gone(worker); }
  std::vector<WorkerId> awaited() const override;
  bool serves(WorkerId worker) const { return servers_.contains(worker); }
  const Ledger& ledger() const { return ledger_; }

 private:
  enum class Phase {
    idle,       ///< no worker is assigned
    waiting,    ///< for servers that are not there
    gathering,  ///< servers take their shards
    training,
  };
  struct Server {
    std::string address{};
    bool alive = false;
    std::optional<std::int64_t> sample{};  ///< that of its shard
    std::optional<int> shard{};
    bool stands = false;  ///< has a place in the formation
    bool formed = false;
    bool leaving = false;  ///< will be taken away
  };
  struct Hand {
    bool attached = false;
    std::optional<std::int64_t> lease{};  ///< in its hands
    std::int64_t updates = 0;             ///< of this worker, for ssp
    MeasuredSpeed speed{};
  };
  struct Given {
    WorkerId worker = 0;
    SampleRange range{};
    std::optional<Pushed> pushed{};
  };

  bool holds(const Server& server) const;
  bool all_shards_held() const;
  bool has_heir(const Server& server) const;
  bool somebody_can_go() const;
  bool arrange();
  bool place_servers();
  void serve();
  void catch_up(WorkerId id, Server& server);
  void attach(WorkerId worker);
  void formed(WorkerId from, const Formed& message);
  void server_formed(WorkerId server, const Formed& message);
  void broke(WorkerId from, const Broken& message);
  void answered(WorkerId from);
  std::optional<Step> count(WorkerId from, const Pushed& message);
  Step update(const std::vector<std::int64_t>& leases) const;
  double staleness(const Pushed& pushed) const;
  void give_leases();
  void plan_step();
  bool may_start(const Hand& hand);
  bool mid_update() const;
  bool all_attached() const;
  std::int64_t pace();
  void give(WorkerId worker, SampleRange range, double share);
  void take_back(std::int64_t lease);
  void forget_all();
  std::vector<WorkerId> idle() const;
  bool waits() const { return options_.servers.sync == ServersSpec::Sync::bsp; }
  int batch_of(WorkerId worker) const;
  std::int64_t step_number() const { return (sample_ + options_.batch - 1) / options_.batch; }
  void send(WorkerId to, ToMember message) { letters_.push_back({to, std::move(message)}); }
  void send_servers(const ToMember& message);

  Options options_;
  std::int64_t formation_;
  std::int64_t generation_ = 0;
  Phase phase_ = Phase::idle;
  bool broken_ = false;
  bool server_broken_ = false;               ///< a server of the formation cannot go on in it
  bool parting_ = false;                     ///< a new formation begins as soon as no worker has anything in hand
  std::optional<std::string> checkpoint_{};  ///< servers start from it; empty: from the first weights
  std::vector<WorkerId> members_{};          ///< as assigned
  std::int64_t sample_ = 0;                  ///< committed
  std::int64_t end_ = 0;
  double loss_ = 0;
  Ledger ledger_{};

  std::map<WorkerId, Server> servers_{};
  std::map<WorkerId, Hand> hands_{};  ///< of every worker alive
  std::map<WorkerId, int> batches_{};
  Unreached unreached_{};
  std::int64_t pace_ = 0;  ///< ssp: updates of the slowest, as far as it was ever seen

  std::int64_t last_lease_ = 0;
  std::map<std::int64_t, Given> leases_{};  ///< out or staged, of this formation
  // bsp: the step in hand.
  std::deque<SampleRange> open_{};  ///< its parts that no worker has
  std::int64_t step_samples_ = 0;
  std::vector<std::int64_t> to_commit_{};  ///< returned by hear()
  std::deque<Commit> commits_{};           ///< the last ones, oldest first
  std::deque<std::int64_t> history_{};     ///< states of the last updates, rising
  bool evaluate_ = false;
  std::optional<std::int64_t> evaluation_{};  ///< the lease that looks at the validation set
  bool save_wanted_ = false;
  std::optional<WorkerId> writer_{};  ///< was asked for a checkpoint and has not answered
  std::vector<Letter> letters_{};
};

}  // namespace mayfly
