#pragma once

#include <gtest/gtest.h>

#include "run/server_crew.h"

namespace mayfly::support {

/// Plays workers and servers that do what they are told, as far as a test lets them. Servers are numbered from 100 on.
struct ServerStage {
  explicit ServerStage(ServersSpec servers) : crew({.servers = servers, .batch = 8}, 0) {}
  ServerCrew crew;
  std::vector<Letter> sent{};

  void collect() {
    for (Letter& letter : crew.letters()) sent.push_back(std::move(letter));
  }
  template <class M>
  std::vector<M> to(WorkerId id) {
    collect();
    std::vector<M> found;
    for (const Letter& letter : sent) {
      if (letter.to == id && std::holds_alternative<M>(letter.message)) found.push_back(std::get<M>(letter.message));
    }
    return found;
  }
  template <class M>
  M last(WorkerId id) {
    const auto all = to<M>(id);
    return all.empty() ? M{} : all.back();
  }
  void serve(std::initializer_list<WorkerId> servers) {
    for (const WorkerId server : servers) crew.server_ready(server, "at " + std::to_string(server));
  }
  /// Every server that was told to serve does, then every worker that was told to attach.
  void stand() {
    for (const WorkerId server : crew.servers()) crew.hear(server, Formed{crew.formation()});
    for (const WorkerId worker : crew.ranks()) crew.hear(worker, Formed{crew.formation()});
  }
  /// Workers 1 to `workers` train with one server a shard.
  void train(int workers) {
    std::vector<WorkerId> members;
    for (WorkerId worker = 1; worker <= workers; ++worker) {
      crew.arrived(worker);
      members.push_back(worker);
    }
    ASSERT_TRUE(crew.assign(side_by_side(1, members, 0)));
    crew.go_on(1000);
    stand();
  }
  std::optional<Crew::Step> push(WorkerId worker, std::int64_t pulled = 0) {
    const auto lease = last<Lease>(worker);
    return crew.hear(worker, Pushed{.formation = lease.formation,
                                    .lease = lease.lease,
                                    .sample = std::max(pulled, lease.sample),
                                    .loss = 1,
                                    .compute_s = 0.1});
  }
  void commit() {
    crew.commit();
    crew.go_on(1000);
  }
};

}  // namespace mayfly::support
