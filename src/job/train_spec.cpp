#include "job/train_spec.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <string_view>

#include "base/text.h"
#include "job/store_url.h"

namespace mayfly {
namespace {

using Words = std::vector<std::string>;

const Words kModels{"mlp", "cnn", "resnet", "gpt", "torchscript", "dials", "count", "script"};
const Words kData{"digits", "idx", "cifar", "text", "images", "synthetic", "dials", "count"};

std::string listed(const Words& words) { return fmt::format("{}", fmt::join(words, ", ")); }

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The word at `key`, which must be one of those known; the first of them where the key is absent.
std::string known_word(Section& section, std::string_view key, const Words& known) {
  const auto word = section.maybe_text(key);
  if (!word) return known.front();
  if (std::find(known.begin(), known.end(), *word) == known.end()) {
    // Of two words the nearer one is a guess, and a bad one where 'gpu' becomes 'cpu'.
    const auto hint = known.size() > 2 ? did_you_mean(*word, known) : "";
    section.reject(key, fmt::format("'{}', want one of {}{}", *word, listed(known), hint));
  }
  return *word;
}

std::string required_word(Section& section, std::string_view key, const Words& known) {
  if (section.text(key).empty()) return "";
  return known_word(section, key, known);
}

/// A key that belongs to something other than `name` would be read by no code.
void refuse_stranger(Section& section, std::string_view key, std::string_view name,
                     std::initializer_list<std::string_view> owners) {
  if (!section.has(key) || is_one_of(name, owners)) return;
  section.reject(key, fmt::format("goes with {}, not with {}", fmt::join(owners, " and "), name));
}

std::vector<int> read_sizes(Section& section, std::string_view key) {
  constexpr double kMost = 1'000'000;
  std::vector<int> sizes;
  for (const double size : section.numbers(key, Range::positive)) {
    if (size != std::floor(size) || size > kMost) {
      section.reject(key, fmt::format("{}, want whole numbers up to 10^6", size));
      return {};
    }
    sizes.push_back(static_cast<int>(size));
  }
  return sizes;
}

double below_one(Section& section, std::string_view key, double absent) {
  const double number = section.maybe_number(key, Range::fraction).value_or(absent);
  if (number >= 1) section.reject(key, fmt::format("{}, want a number from 0 to below 1", number));
  return number;
}

double at_most(Section& section, std::string_view key, Range range, double absent, double most) {
  const double number = section.maybe_number(key, range).value_or(absent);
  if (number > most) section.reject(key, fmt::format("{}, want at most {}", number, most));
  return number;
}

ModelSpec read_model(Section section) {
  ModelSpec model{.name = required_word(section, "name", kModels)};
  refuse_stranger(section, "file", model.name, {"torchscript"});
  refuse_stranger(section, "hidden", model.name, {"mlp"});
  refuse_stranger(section, "depth", model.name, {"resnet"});
  refuse_stranger(section, "width", model.name, {"cnn", "resnet"});
  refuse_stranger(section, "context", model.name, {"gpt", "torchscript"});
  for (const auto key : {"layers", "heads", "embedding"}) refuse_stranger(section, key, model.name, {"gpt"});
  for (const auto key : {"compute_ms", "device_ms", "parameters_mb"})
    refuse_stranger(section, key, model.name, {"dials"});
  if (model.name == "torchscript") model.file = section.text("file");
  if (model.name == "mlp") model.hidden = read_sizes(section, "hidden");
  model.depth = section.maybe_integer("depth").value_or(model.depth);
  model.width = section.maybe_integer("width").value_or(model.width);
  model.layers = section.maybe_integer("layers").value_or(model.layers);
  model.heads = section.maybe_integer("heads").value_or(model.heads);
  model.embedding = section.maybe_integer("embedding").value_or(model.embedding);
  model.context = section.maybe_integer("context").value_or(model.context);
  model.compute_ms = section.maybe_number("compute_ms", Range::non_negative).value_or(model.compute_ms);
  model.device_ms = section.maybe_number("device_ms", Range::non_negative).value_or(model.device_ms);
  model.parameters_mb = at_most(section, "parameters_mb", Range::positive, model.parameters_mb, 10'000);
  if (model.depth < 8 || (model.depth - 2) % 6 != 0)
    section.reject("depth", fmt::format("{}, want 6n+2: 8, 14, 20, 26, 32, 44, 56, 110 ...", model.depth));
  if (model.embedding % model.heads != 0) {
    section.reject("embedding", fmt::format("{}, want a multiple of the {} heads", model.embedding, model.heads));
  }
  section.finish();
  return model;
}

/// `PATH` or `[PATH ...]`.
std::vector<std::string> read_files(Section& section) {
  const Value* value = section.raw("files");
  if (value == nullptr) return {};
  if (value->kind == Value::Kind::scalar) return {value->scalar};
  std::vector<std::string> files;
  for (const auto& item : value->items) {
    if (item.kind == Value::Kind::scalar && !item.scalar.empty()) files.push_back(item.scalar);
  }
  if (value->kind != Value::Kind::list || files.size() != value->items.size())
    section.reject("files", "want a path or a list of paths");
  return files;
}

void check_files(Section& section, const DataSpec& data) {
  const auto want = [&](std::string_view what) {
    section.reject("files", fmt::format("{} given, want {}", data.files.size(), what));
  };
  if (data.name == "idx" && data.files.size() != 2) want("two: images, then labels");
  if (data.name == "cifar" && data.files.empty()) want("the batches, for example [data_batch_1.bin]");
  if (data.name == "text" && data.files.size() != 1) want("one");
  if (data.name == "images" && data.files.size() != 1) want("one: the folder of the classes' folders");
  if (data.name == "dials" && data.files.size() != 1) want("one, which is made if it is not there");
}

LoaderSpec read_loader_spec(Section section) {
  constexpr int kMostThreads = 256, kMostAhead = 1000;
  LoaderSpec loader;
  loader.prep_threads = section.maybe_integer("prep_threads", Range::non_negative);
  if (loader.prep_threads.value_or(0) > kMostThreads)
    section.reject("prep_threads", fmt::format("{}, want at most {}", *loader.prep_threads, kMostThreads));
  loader.ahead = section.maybe_integer("ahead", Range::non_negative).value_or(loader.ahead);
  if (loader.ahead > kMostAhead) section.reject("ahead", fmt::format("{}, want at most {}", loader.ahead, kMostAhead));
  loader.cache_mb = at_most(section, "cache_mb", Range::non_negative, 0, 1e7);
  loader.partitioned = section.maybe_flag("partitioned").value_or(false);
  if (loader.partitioned && loader.cache_mb == 0)
    section.reject("partitioned", "wants a cache to take part with: cache_mb");
  if (const auto rate = section.maybe_number("storage_mb_per_s", Range::positive))
    loader.storage = BytesPerSecond{*rate * 1e6};
  loader.share = section.maybe_text("share").value_or("");
  const bool plain = std::all_of(loader.share.begin(), loader.share.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!plain || loader.share.size() > 64)
    section.reject("share", "want a name of up to 64 letters, digits, '-', '_' and '.'");
  section.finish();
  return loader;
}

void read_dials(Section& section, DataSpec& data) {
  for (const auto key : {"sample_kb", "prep_ms"}) refuse_stranger(section, key, data.name, {"dials"});
  data.sample_kb = at_most(section, "sample_kb", Range::positive, data.sample_kb, 1e6);
  data.prep_ms = at_most(section, "prep_ms", Range::non_negative, data.prep_ms, 1e5);
}

void read_shape(Section& section, DataSpec& data) {
  if (data.name == "synthetic") {
    data.shape = read_sizes(section, "shape");
    if (data.shape.empty()) section.reject("shape", "empty, want for example [20] or [3, 32, 32]");
  }
  if (data.name == "images") {
    data.shape = read_sizes(section, "shape");
    const bool known = data.shape.size() == 3 && (data.shape[0] == 1 || data.shape[0] == 3);
    if (!known || std::max(data.shape[1], data.shape[2]) > 4096)
      section.reject("shape", "want [CHANNELS, HEIGHT, WIDTH], 1 or 3 channels and sides up to 4096: [3, 224, 224]");
  }
}

DataSpec read_data(Section section) {
  DataSpec data{.name = required_word(section, "name", kData)};
  refuse_stranger(section, "files", data.name, {"idx", "cifar", "text", "images", "dials"});
  refuse_stranger(section, "samples", data.name, {"digits", "synthetic", "dials", "count"});
  refuse_stranger(section, "shape", data.name, {"synthetic", "images"});
  refuse_stranger(section, "classes", data.name, {"synthetic"});
  refuse_stranger(section, "seed", data.name, {"digits", "synthetic"});
  data.files = read_files(section);
  check_files(section, data);
  if (is_one_of(data.name, {"digits", "synthetic", "dials", "count"})) data.samples = section.integer("samples");
  read_shape(section, data);
  read_dials(section, data);
  if (auto loader = section.maybe_section("loader")) data.loader = read_loader_spec(*loader);
  data.classes = section.maybe_integer("classes").value_or(data.classes);
  data.seed = static_cast<std::uint64_t>(section.maybe_integer("seed", Range::non_negative).value_or(1));
  section.finish();
  return data;
}

/// What a model can learn from.
void check_pair(Section& section, std::string_view key, const ModelSpec& model, const DataSpec& data) {
  const auto refuse = [&](std::string_view want) {
    section.reject(key, fmt::format("{} data for the model {}, want {}", data.name, model.name, want));
  };
  if (model.name == "count" && data.name != "count") return refuse("count");
  if (model.name == "dials" && data.name != "dials") return refuse("dials");
  if (model.name != "dials" && data.name == "dials") return refuse("any but dials");
  if (model.name == "gpt" && data.name != "text") return refuse("text");
  if (model.name != "count" && data.name == "count") return refuse("any but count");
  if (is_one_of(model.name, {"mlp", "cnn", "resnet"}) && data.name == "text") return refuse("any but text and count");
  if (is_one_of(model.name, {"cnn", "resnet"}) && data.name == "synthetic" && data.shape.size() != 3)
    refuse("a shape of three numbers: channels, height and width");
}

OptimiserSpec read_optimiser(Section section) {
  const auto name = known_word(section, "kind", {"sgd", "adam", "adamw"});
  OptimiserSpec optimiser;
  if (name == "adam") optimiser.kind = OptimiserSpec::Kind::adam;
  if (name == "adamw") optimiser.kind = OptimiserSpec::Kind::adamw;
  refuse_stranger(section, "momentum", name, {"sgd"});
  for (const auto key : {"beta1", "beta2", "epsilon"}) refuse_stranger(section, key, name, {"adam", "adamw"});
  optimiser.rate = section.maybe_number("rate", Range::positive).value_or(name == "sgd" ? 0.1 : 0.001);
  optimiser.momentum = below_one(section, "momentum", optimiser.momentum);
  optimiser.weight_decay = section.maybe_number("weight_decay", Range::non_negative).value_or(0);
  optimiser.beta1 = below_one(section, "beta1", optimiser.beta1);
  optimiser.beta2 = below_one(section, "beta2", optimiser.beta2);
  optimiser.epsilon = section.maybe_number("epsilon", Range::positive).value_or(optimiser.epsilon);
  section.finish();
  return optimiser;
}

ScheduleSpec read_schedule(Section section) {
  const auto name = known_word(section, "kind", {"constant", "step", "cosine"});
  ScheduleSpec schedule;
  for (const auto key : {"every_steps", "factor"}) refuse_stranger(section, key, name, {"step"});
  for (const auto key : {"total_steps", "floor"}) refuse_stranger(section, key, name, {"cosine"});
  schedule.warmup_steps = section.maybe_number("warmup_steps", Range::non_negative).value_or(0);
  if (name == "step") {
    schedule.kind = ScheduleSpec::Kind::step;
    schedule.every_steps = section.number("every_steps", Range::positive);
    schedule.factor = section.maybe_number("factor", Range::positive).value_or(schedule.factor);
    // Above 1 the rate grows beyond every number in a long run.
    if (schedule.factor > 1) section.reject("factor", fmt::format("{}, want more than 0, at most 1", schedule.factor));
  }
  if (name == "cosine") {
    schedule.kind = ScheduleSpec::Kind::cosine;
    schedule.total_steps = section.number("total_steps", Range::positive);
    schedule.floor = section.maybe_number("floor", Range::fraction).value_or(0);
    if (schedule.total_steps <= schedule.warmup_steps)
      section.reject("total_steps", fmt::format("{}, want more than the {} steps of warmup", schedule.total_steps,
                                                schedule.warmup_steps));
  }
  section.finish();
  return schedule;
}

CheckpointSpec read_checkpoint(Section section) {
  CheckpointSpec checkpoint{.directory = section.maybe_text("directory").value_or("")};
  if (const auto to = section.maybe_text("to")) {
    if (!checkpoint.directory.empty()) section.reject("to", "means the same as 'directory': want one of them");
    checkpoint.directory = *to;
  }
  if (is_store_url(checkpoint.directory)) {
    const auto url = parse_store_url(checkpoint.directory);
    if (!url) section.reject(section.has("to") ? "to" : "directory", url.error().message);
    if (url) checkpoint.directory = url->text();
  }
  if (const auto text = section.maybe_text("every")) {
    const auto every = parse_duration(*text);
    if (!every) {
      section.reject("every", every.error().message);
    } else if (every->count() <= 0) {
      section.reject("every", fmt::format("'{}', want a duration above 0", *text));
    } else {
      checkpoint.every = *every;
    }
  }
  checkpoint.keep = section.maybe_integer("keep").value_or(checkpoint.keep);
  section.finish();
  return checkpoint;
}

/// `asp`, `bsp` or `ssp(3)`.
void read_sync(Section& section, ServersSpec& servers) {
  const auto text = section.maybe_text("sync");
  if (!text || *text == "bsp") return;
  if (*text == "asp") {
    servers.sync = ServersSpec::Sync::asp;
    return;
  }
  const bool bounded = text->starts_with("ssp(") && text->ends_with(")");
  const auto bound = bounded ? parse_integer(text->substr(4, text->size() - 5)) : std::nullopt;
  if (!bound || *bound < 0) return section.reject("sync", fmt::format("'{}', want asp, bsp or ssp(3)", *text));
  servers.sync = ServersSpec::Sync::ssp;
  servers.bound = static_cast<int>(*bound);
}

ServersSpec read_servers(Section section) {
  ServersSpec servers;
  servers.count = section.maybe_integer("count").value_or(servers.count);
  servers.standby = section.maybe_integer("standby", Range::non_negative).value_or(servers.standby);
  servers.type = section.maybe_text("type").value_or("");
  read_sync(section, servers);
  section.finish();
  return servers;
}

void read_all_data(Section& section, TrainSpec& train) {
  train.data = read_data(section.section("data"));
  check_pair(section, "data", train.model, train.data);
  if (auto validation = section.maybe_section("validation")) {
    train.validation = read_data(*validation);
    check_pair(section, "validation", train.model, *train.validation);
    if (train.validation->loader != LoaderSpec{})
      section.reject("validation",
                     "has a loader, which goes with data alone: validation is read by the trainer itself");
  }
}

/// A script has its own data and network; its own optimiser too, unless servers hold the parameters.
void refuse_the_scripts_own(Section& section) {
  for (const auto key : {"data", "validation", "device"}) {
    if (section.has(key)) section.reject(key, "is the script's own affair where the model is a script");
  }
  if (section.has("servers")) return;
  for (const auto key : {"optimiser", "schedule", "scale_rate"}) {
    if (section.has(key)) section.reject(key, "is the script's own affair where the model is a script without servers");
  }
}

double cosine_factor(const ScheduleSpec& schedule, double step) {
  const double done =
      std::clamp((step - schedule.warmup_steps) / (schedule.total_steps - schedule.warmup_steps), 0.0, 1.0);
  return schedule.floor + (1 - schedule.floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace

bool workers_wait(const TrainSpec& spec) { return !spec.servers || spec.servers->sync == ServersSpec::Sync::bsp; }

int batch_of_each(const TrainSpec& spec, int workers) {
  return workers_wait(spec) ? std::max(1, spec.batch / workers) : spec.batch;
}

double rate_factor(const ScheduleSpec& schedule, double step) {
  const double warm = step + 1 < schedule.warmup_steps ? (step + 1) / schedule.warmup_steps : 1;
  switch (schedule.kind) {
    case ScheduleSpec::Kind::constant:
      break;
    case ScheduleSpec::Kind::step:
      return warm * std::pow(schedule.factor, std::floor(step / schedule.every_steps));
    case ScheduleSpec::Kind::cosine:
      return warm * cosine_factor(schedule, step);
  }
  return warm;
}

TrainSpec read_train(Section section) {
  TrainSpec train{.model = read_model(section.section("model"))};
  if (train.model.is_script()) {
    refuse_the_scripts_own(section);
  } else {
    read_all_data(section, train);
  }
  if (auto optimiser = section.maybe_section("optimiser")) train.optimiser = read_optimiser(*optimiser);
  if (auto schedule = section.maybe_section("schedule")) train.schedule = read_schedule(*schedule);
  if (auto checkpoint = section.maybe_section("checkpoint")) train.checkpoint = read_checkpoint(*checkpoint);
  if (auto servers = section.maybe_section("servers")) train.servers = read_servers(*servers);
  train.batch = section.maybe_integer("batch").value_or(train.batch);
  train.clip = section.maybe_number("clip", Range::positive);
  train.sum = known_word(section, "reduction", {"mean", "sum"}) == "sum";
  train.scale_rate = section.maybe_flag("scale_rate").value_or(false);
  train.device = known_word(section, "device", {"cpu", "cuda"});
  train.seed = static_cast<std::uint64_t>(section.maybe_integer("seed", Range::non_negative).value_or(1));
  train.stop_on_nan = known_word(section, "on_nan", {"stop", "go"}) == "stop";
  train.nan_steps = section.maybe_integer("nan_steps").value_or(train.nan_steps);
  train.stop_on_drift = known_word(section, "on_drift", {"stop", "go"}) == "stop";
  section.finish();
  return train;
}

}  // namespace mayfly
