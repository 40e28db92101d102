#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/abortable.h"
#include "wire/channel.h"

namespace mayfly {

/// The door through which peers reach this process; one serves all meshes of a process. Who comes proves that it
/// belongs to the run before anything it says is heard.
class NetworkDevice {
 public:
  /// Listens on this interface's IPv4 address alone: "lo", "eth0".
  static Result<std::unique_ptr<NetworkDevice>> open(const std::string& interface, const Credentials& credentials);
  ~NetworkDevice();

  struct Parts;
  Parts& parts() { return *parts_; }

 private:
  explicit NetworkDevice(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// The connections of one formation, each worker with each other. All calls but abort() come from one thread; after an
/// error every further call fails, and so do the others' that wait for this worker.
class Mesh final : public Abortable {
 public:
  struct Place {
    std::int64_t formation = 0;
    int rank = 0;
    int size = 1;
  };
  /// From now on others are let in. The network must outlive the mesh.
  static Result<std::unique_ptr<Mesh>> open(NetworkDevice& network, Place place);
  ~Mesh() override;

  /// Where the others reach this worker: "127.0.0.1:40001".
  const std::string& word() const;
  /// From all workers' words, by rank: where to ask whether they can be reached; empty for this one.
  std::vector<std::string> doorsteps(std::span<const std::string> words) const;
  /// Takes all workers' words, by rank. Blocks until all stand.
  Result<void> connect(std::span<const std::string> words);

  /// Replaces the values with their sums over all workers: the same bits everywhere. Where it fails they are garbage.
  Result<void> sum(std::span<float> values);
  Result<void> sum(std::span<double> values);
  /// The source's bytes, written over those of the receivers. The parts have the same sizes everywhere; other ranks
  /// return at once.
  Result<void> hand_over(int source, std::span<const int> receivers, std::span<const std::span<std::byte>> parts);

  void abort() override;

  struct Parts;

 private:
  explicit Mesh(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace mayfly
