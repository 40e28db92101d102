#include "vault/store_depot.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"
#include "data/checkpoint_folder.h"
#include "data/trainer_state.h"
#include "vault/store_transfer.h"

namespace mayfly {
namespace {

constexpr const char* kLatest = "latest";
/// At the very end.
constexpr Seconds kPatienceToTidy{5};
/// What could not be finished: whatever was in the way of that is in the way of this.
constexpr Seconds kPatienceToTakeBack{2};
constexpr Seconds kPatienceToRead{300};

Error error_of(const StoreFailure& failure) { return {failure.message}; }

/// What the state says of a file against what the listing says.
std::optional<std::string> wrong_size(const StateFile& state, const std::map<std::string, std::uint64_t>& files) {
  for (const auto name : {kModelFile, kOptimiserFile}) {
    const auto wanted = state.files.find(std::string(name));
    if (wanted == state.files.end()) return fmt::format("{} does not say what {} should be", kStateFile, name);
    const auto seen = files.find(std::string(name));
    if (seen == files.end()) return fmt::format("{} is missing", name);
    if (seen->second != wanted->second.bytes)
      return fmt::format("{}: {} bytes, want {}", name, seen->second, wanted->second.bytes);
  }
  return std::nullopt;
}

StoreResult<void> only_if_whose(const std::string& owner, const std::string& run, const StoreUrl& url) {
  if (owner == run) return {};
  return unexpected(StoreFailure{
      .message = fmt::format("{}: holds the checkpoints of another run, {}: give this one a prefix of its own",
                             url.text(), printable(owner))});
}

}  // namespace

bool StoreDepot::Stored::committed() const { return files.contains(std::string(kStateFile)); }

StoreDepot::StoreDepot(StoreUrl url, std::shared_ptr<StoreAccess> access, std::function<void(const std::string&)> said)
    : url_(std::move(url)), access_(std::move(access)), options_{.said = std::move(said)} {}

std::string StoreDepot::key(const StoredName& name, std::string_view file) const {
  return url_.key(fmt::format("{}/{}", name.name, file));
}

StoreResult<std::vector<StoreDepot::Stored>> StoreDepot::stored(ObjectStore& store) {
  const auto objects = store.list(url_.key("checkpoint-"));
  if (!objects) return unexpected(objects.error());
  std::map<std::string, Stored> by_name;
  for (const StoredObject& object : *objects) {
    const auto found = parse_checkpoint_key(url_, object.key);
    if (!found) continue;
    Stored& one = by_name[found->checkpoint.name];
    one.checkpoint = found->checkpoint;
    one.files[found->file] = object.bytes;
  }
  std::vector<Stored> all;
  for (auto& [name, one] : by_name) all.push_back(std::move(one));
  std::stable_sort(all.begin(), all.end(),
                   [](const Stored& a, const Stored& b) { return a.checkpoint.step > b.checkpoint.step; });
  return all;
}

StoreResult<void> StoreDepot::claim(const std::string& run, Seconds patience) {
  auto options = options_;
  options.patience = patience;
  ObjectStore store(access_, options);
  const std::string mark = url_.key(kRunFile);
  const auto all = stored(store);
  if (!all) return unexpected(all.error());
  const auto kept = store.text(mark);
  if (kept) {
    if (auto ours = only_if_whose(std::string(trimmed(*kept)), run, url_); !ours) return ours;
    return store.put(mark, Pieces(run + "\n"));  // that it can be written must be known before anything starts
  }
  if (kept.error().kind != StoreFailure::Kind::missing) return unexpected(kept.error());
  for (const Stored& one : *all) {
    if (!one.committed()) continue;
    const auto text = store.text(key(one.checkpoint, kStateFile));
    if (!text) return unexpected(text.error());
    const auto state = parse_state(*text, address(one.checkpoint));
    if (!state) continue;
    if (auto ours = only_if_whose(state->state.lineage.run, run, url_); !ours) return ours;
  }
  auto created = store.create(mark, run + "\n");
  if (created || created.error().kind != StoreFailure::Kind::taken) return created;
  const auto other = store.text(mark);
  if (!other) return unexpected(other.error());
  return only_if_whose(std::string(trimmed(*other)), run, url_);
}

Result<FoundCheckpoint> StoreDepot::newest(const Lineage& lineage) {
  auto store = connected();
  const auto all = stored(store);
  if (!all) return unexpected(error_of(all.error()));
  FoundCheckpoint found;
  std::int64_t found_step = -1;
  std::vector<std::pair<std::int64_t, std::string>> broken;
  for (const Stored& one : *all) {
    if (!one.committed()) continue;
    const std::string place = address(one.checkpoint);
    const auto text = store.text(key(one.checkpoint, kStateFile));
    if (!text && text.error().kind == StoreFailure::Kind::missing) continue;  // removed meanwhile
    if (!text) return unexpected(error_of(text.error()));
    const auto state = parse_state(*text, place);
    const auto same = state ? check_same(state->state.lineage, lineage) : Result<void>{};
    const auto wrong = state ? wrong_size(*state, one.files) : std::nullopt;
    if (!state) {
      broken.emplace_back(one.checkpoint.step, state.error().message);
    } else if (!same || wrong) {
      broken.emplace_back(one.checkpoint.step, fmt::format("{}: {}", place, same ? *wrong : same.error().message));
    } else if (!found.checkpoint || state->state.sample > found.checkpoint->state.sample) {
      found.checkpoint = SavedState{.path = place, .state = state->state};
      found_step = one.checkpoint.step;
    }
  }
  for (auto& [step, why] : broken) {
    if (step >= found_step) found.broken.push_back(std::move(why));
  }
  return found;
}

StoreResult<void> StoreDepot::send(const StoredName& name, const Files& files, const std::string& state) {
  for (const auto& [file, bytes] : files) {
    if (auto sent = upload_object(access_, options_, bytes, key(name, file)); !sent) return sent;
  }
  return connected().create(key(name, kStateFile), state);
}

Result<std::string> StoreDepot::write(const TrainerState& state, std::span<const TensorView> model,
                                      std::span<const TensorView> optimiser) {
  const StoredName name = new_stored_name(state.step);
  const auto of_model = unwritten_safetensors(key(name, kModelFile), model, {});
  if (!of_model) return unexpected(of_model.error());
  const auto of_optimiser = unwritten_safetensors(key(name, kOptimiserFile), optimiser, {});
  if (!of_optimiser) return unexpected(of_optimiser.error());
  const Files files{{kModelFile, of_model->pieces()}, {kOptimiserFile, of_optimiser->pieces()}};
  StateFile content{.state = state};
  for (const auto& [file, bytes] : files) content.files[std::string(file)] = seal_of(bytes.spans());
  if (auto sent = send(name, files, state_text(content)); !sent) {
    ObjectStore store(access_, {.patience = kPatienceToTakeBack});
    for (const auto file : {kStateFile, kModelFile, kOptimiserFile}) {
      if (!store.remove(key(name, file))) break;
    }
    return unexpected(error_of(sent.error()));
  }
  return address(name);
}

Result<ReadCheckpoint> StoreDepot::read(const std::string& checkpoint) {
  const std::string before = url_.text() + "/";
  const auto name = checkpoint.starts_with(before)
                        ? parse_stored_name(std::string_view(checkpoint).substr(before.size()))
                        : std::nullopt;
  if (!name) return fail("{}: no checkpoint in {}", printable(checkpoint), url_.text());
  // The training waits for it and can do nothing else, unlike with a write.
  auto patient = options_;
  patient.patience = kPatienceToRead;
  ObjectStore store(access_, patient);
  const auto text = store.text(key(*name, kStateFile));
  if (!text) return unexpected(error_of(text.error()));
  const auto state = parse_state(*text, checkpoint);
  if (!state) return unexpected(state.error());
  const auto objects = store.list(url_.key(name->name + "/"));
  if (!objects) return unexpected(error_of(objects.error()));
  Sizes files;
  for (const StoredObject& object : *objects) {
    if (const auto found = parse_checkpoint_key(url_, object.key)) files[found->file] = object.bytes;
  }
  if (const auto wrong = wrong_size(*state, files)) return fail("{}: {}", checkpoint, *wrong);
  ReadCheckpoint read{.state = state->state};
  for (const auto& [file, tensors] :
       {std::pair(kModelFile, &read.tensors.model), std::pair(kOptimiserFile, &read.tensors.optimiser)}) {
    const FileSeal& wanted = state->files.at(std::string(file));
    auto bytes = download_object(access_, patient, key(*name, file), wanted.bytes);
    if (!bytes) return unexpected(error_of(bytes.error()));
    const std::string place = fmt::format("{}/{}", checkpoint, file);
    if (const auto seen = xxh3_of(*bytes); seen != wanted.xxh3)
      return fail("{}: damaged: its checksum is {:016x}, want {:016x}", place, seen, wanted.xxh3);
    auto parsed = parse_safetensors(*std::move(bytes), place);
    if (!parsed) return unexpected(parsed.error());
    *tensors = *std::move(parsed);
  }
  return read;
}

/// The commit record first: half of a checkpoint is none.
StoreResult<void> StoreDepot::remove(ObjectStore& store, const Stored& stored) {
  for (const auto file : {kStateFile, kModelFile, kOptimiserFile}) {
    if (!stored.files.contains(std::string(file))) continue;
    if (auto removed = store.remove(key(stored.checkpoint, file)); !removed) return removed;
  }
  return {};
}

StoreResult<void> StoreDepot::abort_unfinished(ObjectStore& store, std::int64_t last_step) {
  const auto uploads = store.unfinished(url_.key("checkpoint-"));
  if (!uploads) return unexpected(uploads.error());
  for (const UnfinishedUpload& upload : *uploads) {
    const auto found = parse_checkpoint_key(url_, upload.key);
    if (!found || found->checkpoint.step > last_step) continue;
    if (auto aborted = store.abort(upload); !aborted) return aborted;
  }
  return {};
}

StoreResult<void> StoreDepot::clean(ObjectStore& store, const std::string& published, int keep) {
  const auto all = stored(store);
  if (!all) return unexpected(all.error());
  const auto there = std::find_if(
      all->begin(), all->end(), [&](const Stored& one) { return one.committed() && one.checkpoint.name == published; });
  if (there == all->end())
    return unexpected(StoreFailure{.kind = StoreFailure::Kind::missing,
                                   .message = fmt::format("{}/{}: no such checkpoint", url_.text(), published)});
  if (auto named = store.put(url_.key(kLatest), Pieces(published + "\n")); !named) return named;
  int kept = 1;
  for (const Stored& one : *all) {
    // One of a later step may just be coming.
    if (one.checkpoint.step > there->checkpoint.step || one.checkpoint.name == published) continue;
    const bool replaced = one.checkpoint.step == there->checkpoint.step;
    if (one.committed() && !replaced && ++kept <= keep) continue;
    if (auto removed = remove(store, one); !removed) return removed;
  }
  return abort_unfinished(store, there->checkpoint.step);
}

Result<void> StoreDepot::publish(const std::string& checkpoint, int keep) {
  auto store = connected();
  const auto slash = checkpoint.rfind('/');
  const auto done = clean(store, checkpoint.substr(slash == checkpoint.npos ? 0 : slash + 1), keep);
  if (!done) return unexpected(error_of(done.error()));
  return {};
}

void StoreDepot::tidy() {
  ObjectStore store(access_, {.patience = kPatienceToTidy});
  const auto all = stored(store);
  if (!all) return;
  for (const Stored& one : *all) {
    if (!one.committed() && !remove(store, one)) return;
  }
  static_cast<void>(abort_unfinished(store, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace mayfly
