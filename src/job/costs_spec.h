#pragma once

#include <optional>
#include <string>

#include "base/document.h"
#include "base/units.h"

namespace mayfly {

/// Something a job keeps in storage. Without a cloud nobody has said where.
struct StoredSpec {
  std::optional<Bytes> size{};
  std::string cloud{};  ///< "local": storage of one's own
  std::string region{};
  bool operator==(const StoredSpec&) const = default;
};

/// How samples get to the machines that train on them.
enum class Loading {
  copy,    ///< all of them to each machine, before its first step
  share,   ///< a machine's part to each, before its first step
  stream,  ///< as they are trained on, again in every epoch
};

/// What the `costs` block of a job file says: what is paid for beside machine-hours of training.
/// Format: docs/formats.md#job.
struct CostsSpec {
  StoredSpec data{};
  Loading load = Loading::copy;
  StoredSpec checkpoints{};
  std::optional<Seconds> every{};  ///< from one checkpoint to the next
  std::optional<int> keep{};
  std::optional<Bytes> image{};    ///< that a machine gets before it starts the job
  std::optional<Seconds> setup{};  ///< from then to the start of the training's process
  bool operator==(const CostsSpec&) const = default;
};

/// What is wrong is left in the section.
CostsSpec read_costs(Section section);

}  // namespace mayfly
