// A server.

#include "storm/puppet.h"

namespace mayfly::storm {
namespace {

/// Looks for the state of another server.
constexpr int kTries = 200;

}  // namespace

void Puppet::serve(const Serve& serve) {
  if (serving_ && serve_->formation == serve.formation) return say(Formed{.formation = serve.formation});
  const bool same = serve_ && serve_->shard == serve.shard && serve_->shards == serve.shards;
  serving_ = false;
  serve_ = serve;
  staged_.clear();
  unwanted_.clear();
  if (same && weights_ && weights_->sample == serve.sample) return stand(serve);
  weights_.reset();
  take_state(serve, kTries);
}

void Puppet::take_state(const Serve& serve, int tries) {
  if (!serve_ || serve_->formation != serve.formation || serving_) return;
  if (!serve.source.empty()) {
    const Puppet* source = world_.at_address(serve.source);
    if (source == nullptr || tries == 0) return break_serving("its source is gone");
    const bool there = source->serving_ && source->serve_->formation == serve.formation;
    if (!there) return later(kLook, [this, serve, tries] { take_state(serve, tries - 1); });
    world_.account().require(
        source->weights_ && source->weights_->sample == serve.sample && source->serve_->shard == serve.shard,
        "{} is to fetch sample {} where it is not", name(), serve.sample);
    weights_ = source->weights_;
    return stand(serve);
  }
  if (!serve.from_checkpoint) return break_serving("told to go on from a sample that it does not hold");
  const Saved* saved = world_.checkpoint(serve.checkpoint);
  if (serve.checkpoint.empty()) {
    weights_ = Weights{};
  } else if (saved != nullptr) {
    weights_ = saved->weights;
  }
  if (!weights_ && serve.formation < world_.account().formation()) return say(Unable{"too late: it is gone"});
  world_.account().require(weights_ && weights_->sample == serve.sample,
                           "{} is to start from '{}' at {}, and there is no such checkpoint", name(), serve.checkpoint,
                           serve.sample);
  stand(serve);
}

void Puppet::stand(const Serve& serve) {
  later(world_.delay(), [this, serve] {
    if (!serve_ || serve_->formation != serve.formation) return;
    serving_ = true;
    say(Formed{.formation = serve.formation});
  });
}

void Puppet::commit(const Commit& commit) {
  if (!weights_ || commit.sample <= weights_->sample) return;
  for (const std::int64_t lease : commit.leases) {
    if (!staged_.contains(lease)) return break_serving("a lease is not staged");
  }
  world_.account().require(commit.from == weights_->sample, "{} holds {} and is told to go from {}", name(),
                           weights_->sample, commit.from);
  for (const std::int64_t lease : commit.leases) {
    const SampleRange range = staged_.extract(lease).mapped();
    weights_->apply(range.first, range.count);
  }
  applied_in_ = commit.formation;
  world_.account().applied(name(), *weights_, commit.formation);
  world_.account().require(weights_->sample == commit.sample, "{} comes to {} and not to {}", name(), weights_->sample,
                           commit.sample);
}

void Puppet::forget(const Forget& forget) {
  for (const std::int64_t lease : forget.leases) {
    if (staged_.erase(lease) == 0) unwanted_.insert(lease);
  }
}

void Puppet::save(const Save& save) {
  const bool writes = !save.addresses.empty();
  if (!weights_ || weights_->sample != save.sample) {
    if (writes) say(CheckpointFailed{.sample = save.sample, .what = "holds another state"});
    return;
  }
  copy_ = weights_;
  if (writes) later(Seconds(world_.rng().exponential(0.2)), [this, save] { gather(save, kTries); });
}

void Puppet::gather(const Save& save, int tries) {
  for (const std::string& address : save.addresses) {
    const Puppet* other = address == address_ ? this : world_.at_address(address);
    const bool there = other != nullptr && other->copy_ && other->copy_->sample == save.sample;
    // The word may reach the other later than this one.
    if (other != nullptr && !there && tries > 0) return later(kLook, [this, save, tries] { gather(save, tries - 1); });
    if (!there) return say(CheckpointFailed{.sample = save.sample, .what = "a server is gone"});
    world_.account().compared(fmt::format("the shards of {} and {}", name(), other->name()), *copy_, *other->copy_);
  }
  std::vector<SampleRange> ledger;
  for (std::size_t i = 0; i + 1 < save.ledger.size(); i += 2) ledger.push_back({save.ledger[i], save.ledger[i + 1]});
  const std::string path = fmt::format("checkpoint-{}", save.sample);
  if (!world_.save(path, *copy_, ledger)) return say(CheckpointFailed{.sample = save.sample, .what = "full"});
  say(CheckpointWritten{.sample = save.sample, .path = path, .size_mb = 0.1, .stall_s = 0.001, .write_s = 0.2});
}

void Puppet::break_serving(const std::string& why) { say(Broken{.formation = serve_->formation, .what = why}); }

}  // namespace mayfly::storm
