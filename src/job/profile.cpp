#include "job/profile.h"

#include <array>
#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace mayfly {

std::string_view name(Sync sync) { return sync == Sync::asp ? "asp" : "bsp"; }
std::string_view name(Exchange exchange) {
  return exchange == Exchange::server ? "server" : exchange == Exchange::all_reduce ? "all-reduce" : "pipeline";
}

namespace {

/// A word of a fixed set; the field's error names the set.
template <class Enum, std::size_t N>
Enum choice(Section& section, std::string_view key, const std::array<Enum, N>& values, Enum fallback) {
  const auto text = section.maybe_text(key);
  if (!text) return fallback;
  std::string wanted;
  for (const Enum value : values) {
    if (name(value) == *text) return value;
    wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", name(value));
  }
  section.reject(key, fmt::format("'{}', want one of {}", *text, wanted));
  return fallback;
}

constexpr std::array kSyncs{Sync::asp, Sync::bsp};
constexpr std::array kExchanges{Exchange::server, Exchange::all_reduce, Exchange::pipeline};

std::optional<BytesPerSecond> maybe_rate(Section& section, std::string_view key) {
  const auto mb = section.maybe_number(key, Range::positive);
  return mb ? std::optional(megabytes_per_second(*mb)) : std::nullopt;
}
std::optional<Seconds> maybe_seconds(Section& section, std::string_view key, Range range = Range::positive) {
  const auto s = section.maybe_number(key, range);
  return s ? std::optional(Seconds(*s)) : std::nullopt;
}
Seconds milliseconds(Section& section, std::string_view key) {
  return Seconds(section.maybe_number(key, Range::non_negative).value_or(0) / 1e3);
}

Origin read_origin(Section section) {
  Origin origin{.basis = read_basis(section, Basis::given), .source = section.text("source")};
  origin.date = section.maybe_text("date").value_or("");
  if (!origin.date.empty()) {
    const auto day = parse_date(origin.date);
    if (!day) section.reject("date", day.error().message);
  }
  origin.job = section.maybe_text("job").value_or("");
  origin.machine = section.maybe_text("machine").value_or("");
  if (const Value* notes = section.raw("notes")) {
    for (const Value& one : notes->items) origin.notes.push_back(one.scalar);
    if (notes->kind != Value::Kind::list) section.reject("notes", "want a list of texts");
  }
  section.finish();
  return origin;
}

TypeProfile read_type(Section& section, Basis fallback) {
  TypeProfile type{.batch = section.maybe_number("batch", Range::positive).value_or(0)};
  type.step = maybe_seconds(section, "step_s");
  if (const auto speed = section.maybe_number("samples_per_s", Range::positive)) {
    if (type.step) section.reject("samples_per_s", "stands beside step_s; give one of the two");
    type.step = Seconds(type.batch / *speed);
  }
  type.compute = maybe_seconds(section, "compute_s");
  type.relative_sd = section.maybe_number("relative_sd", Range::non_negative).value_or(0);
  type.gflops = section.maybe_number("gflops", Range::positive);
  type.network = maybe_rate(section, "network_mb_per_s");
  type.cores = section.maybe_number("cores", Range::positive);
  type.batches = read_batches(section);
  type.basis = read_basis(section, fallback);
  if ((type.step || type.compute) && type.batch == 0) section.reject("batch", "missing beside a step time");
  section.finish();
  return type;
}

LossCurve read_loss(Section section) {
  LossCurve loss;
  const auto form = section.text("form");
  if (form == "spotdnn") {
    loss.form = LossCurve::Form::spotdnn;
    loss.shift = section.number("gamma1");
    loss.batch_slope = section.number("gamma2");
    loss.scale = section.number("gamma3", Range::positive);
    loss.cc_offset = section.maybe_number("gamma4", Range::non_negative);
    loss.floor = section.number("floor");
  } else if (form == "cynthia") {
    loss.form = LossCurve::Form::cynthia;
    loss.scale = section.number("beta0", Range::positive);
    loss.floor = section.number("beta1");
  } else if (form == "common-start") {
    loss.form = LossCurve::Form::common_start;
    loss.initial = section.number("initial");
    loss.batch_slope = section.number("batch_slope");
    loss.scale = section.number("scale", Range::positive);
    loss.cc_offset = section.maybe_number("cc_offset", Range::non_negative);
    loss.workers_power = section.maybe_number("workers_power", Range::fraction);
    loss.floor = section.number("floor");
    if (section.ok() && loss.initial <= loss.floor) section.reject("initial", "is not above the floor");
  } else if (section.ok()) {
    section.reject("form", fmt::format("'{}', want spotdnn, cynthia or common-start", form));
  }
  loss.relative_sd = section.maybe_number("relative_sd", Range::non_negative).value_or(0);
  loss.batch_min = section.maybe_number("batch_min", Range::non_negative).value_or(loss.batch_min);
  loss.batch_max = section.maybe_number("batch_max", Range::positive).value_or(loss.batch_max);
  if (section.ok() && loss.batch_min > loss.batch_max) section.reject("batch_min", "is above batch_max");
  section.finish();
  return loss;
}

CynthiaProfile read_cynthia(Section section) {
  CynthiaProfile cynthia{.work_gflop = section.number("work_gflop", Range::positive)};
  cynthia.base_gflops = section.maybe_number("base_gflops", Range::positive);
  cynthia.server_gflops_used = section.maybe_number("server_gflops_used", Range::positive);
  section.finish();
  return cynthia;
}

ServerlessProfile read_serverless(Section section) {
  ServerlessProfile s{.platform = section.text("platform")};
  s.memory_mib_min = section.integer("memory_mib_min");
  s.memory_mib_max = section.integer("memory_mib_max");
  s.memory_mib_step = section.integer("memory_mib_step");
  s.rate_slope = section.number("rate_slope");
  s.rate_offset = section.number("rate_offset");
  s.local_batch = section.number("local_batch", Range::positive);
  s.global_batch_max = section.number("global_batch_max", Range::positive);
  s.load_slope = section.number("load_slope", Range::non_negative);
  s.load_offset = section.number("load_offset");
  s.load_saturation_mib = section.maybe_number("load_saturation_mib", Range::non_negative).value_or(0);
  s.store = maybe_rate(section, "store_mb_per_s");
  s.function_network = megabytes_per_second(section.number("function_mb_per_s", Range::positive));
  s.server_network = megabytes_per_second(section.number("server_mb_per_s", Range::positive));
  s.whole_iterations = section.maybe_flag("whole_iterations").value_or(true);
  s.restart = maybe_seconds(section, "restart_s", Range::non_negative).value_or(Seconds{0});
  if (section.ok()) {
    if (s.memory_mib_max < s.memory_mib_min) section.reject("memory_mib_max", "is below memory_mib_min");
    if (s.rate_slope * s.memory_mib_min + s.rate_offset <= 0) {
      section.reject("rate_offset", "gives no positive speed at memory_mib_min");
    }
    if (s.load_slope * s.memory_mib_min + s.load_offset <= 0) {
      section.reject("load_offset", "gives no positive load rate at memory_mib_min");
    }
    if (s.global_batch_max < s.local_batch) section.reject("global_batch_max", "is below local_batch");
  }
  section.finish();
  return s;
}

GroupCost read_group(Section section) {
  GroupCost group{.per = section.text("per"), .fixed = milliseconds(section, "fixed_ms")};
  if (group.per != "groups" && group.per != "machines" && group.per != "width" && section.ok()) {
    section.reject("per", fmt::format("'{}', want groups, machines or width", group.per));
  }
  group.join = milliseconds(section, "join_ms");
  group.leave = milliseconds(section, "leave_ms");
  for (auto& step : section.list("from_width")) {
    group.from_width.emplace_back(step.integer("data_parallel"), milliseconds(step, "ms"));
    step.finish();
  }
  group.join_factor = section.maybe_number("join_factor", Range::positive).value_or(1);
  group.leave_factor = section.maybe_number("leave_factor", Range::positive).value_or(1);
  section.finish();
  return group;
}

RestartCost read_restart(Section section) {
  RestartCost restart{.rendezvous = milliseconds(section, "rendezvous_ms"),
                      .join_extra = milliseconds(section, "join_extra_ms"),
                      .process = milliseconds(section, "process_ms"),
                      .checkpoint = milliseconds(section, "checkpoint_ms"),
                      .group = read_group(section.section("group"))};
  section.finish();
  return restart;
}

RedundancyProfile read_redundancy(Section section) {
  RedundancyProfile r{.start = Seconds(section.number("start_s", Range::non_negative)),
                      .global_rendezvous = Seconds(section.number("global_rendezvous_s", Range::non_negative)),
                      .local_rendezvous = Seconds(section.number("local_rendezvous_s", Range::non_negative)),
                      .slowdown = section.number("slowdown", Range::positive),
                      .capacity = section.integer("capacity"),
                      .on_demand_gpus = section.integer("on_demand_gpus"),
                      .on_demand_step = Seconds(section.number("on_demand_step_s", Range::positive))};
  r.stages = section.maybe_integer("stages");
  r.full_run_steps = section.maybe_number("full_run_steps", Range::positive);
  section.finish();
  return r;
}

PipelineProfile read_pipeline(Section section) {
  PipelineProfile p{.type = section.text("type"), .global_batch = section.number("global_batch", Range::positive)};
  p.micro_batch = section.maybe_number("micro_batch", Range::positive);
  p.bytes_per_parameter = section.maybe_number("bytes_per_parameter", Range::positive).value_or(0);
  for (auto& run : section.list("layers")) {
    p.layers.push_back({.count = run.integer("count"), .parameters = run.number("parameters", Range::positive)});
    run.finish();
  }
  p.min_stages = section.integer("min_stages");
  p.max_stages = section.integer("max_stages");
  p.min_data_parallel = section.maybe_integer("min_data_parallel").value_or(1);
  if (section.has("excluded_stages")) {
    for (const double stage : section.numbers("excluded_stages", Range::positive)) {
      if (stage != std::floor(stage) || stage > 1e6) {
        section.reject("excluded_stages", fmt::format("'{}', want whole numbers", stage));
      } else {
        p.excluded_stages.push_back(static_cast<int>(stage));
      }
    }
  }
  for (auto& point : section.list("speeds")) {
    ShapeSpeed speed{.data_parallel = point.integer("data_parallel"),
                     .stages = point.integer("stages"),
                     .iteration = Seconds(point.number("iteration_ms", Range::positive) / 1e3)};
    if (const auto rate = point.maybe_number("samples_per_s", Range::positive)) speed.speed = SamplesPerSecond{*rate};
    point.finish();
    p.speeds.push_back(speed);
  }
  for (auto& point : section.list("transfers")) {
    p.transfers.push_back({.size = {point.number("bytes", Range::positive)},
                           .time = Seconds(point.number("time_us", Range::positive) / 1e6)});
    point.finish();
  }
  for (auto& point : section.list("builds")) {
    p.builds.push_back({.stages = point.integer("stages"), .time = milliseconds(point, "ms")});
    point.finish();
  }
  if (auto restart = section.maybe_section("restart")) p.restart = read_restart(*restart);
  if (auto redundancy = section.maybe_section("redundancy")) p.redundancy = read_redundancy(*redundancy);
  if (section.ok() && p.max_stages < p.min_stages) section.reject("max_stages", "is below min_stages");
  if (section.ok() && p.speeds.empty()) section.reject("speeds", "missing or empty");
  section.finish();
  return p;
}

void read_job(Section job, Profile& profile) {
  profile.model = job.text("model");
  profile.dataset = job.maybe_text("dataset").value_or("");
  if (const auto n = job.maybe_number("samples", Range::positive)) profile.samples = Samples{*n};
  if (const auto mb = job.maybe_number("dataset_mb", Range::positive)) profile.dataset_size = megabytes(*mb);
  if (const auto mb = job.maybe_number("parameters_mb", Range::positive)) profile.parameters = megabytes(*mb);
  profile.tensors = job.maybe_number("tensors", Range::positive);
  profile.gflops = job.maybe_number("gflops", Range::positive);
  profile.recipe = read_recipe(job);
  profile.exchange = choice(job, "exchange", kExchanges, Exchange::server);
  // Around a ring all wait for each other.
  profile.sync = choice(job, "sync", kSyncs, profile.exchange == Exchange::all_reduce ? Sync::bsp : Sync::asp);
  profile.batch = job.maybe_number("batch", Range::positive);
  profile.scale_batch = job.maybe_flag("scale_batch").value_or(false);
  if (const auto most = job.maybe_number("max_batch", Range::positive)) profile.most_batch = *most;
  if (job.ok() && job.has("max_batch") && !profile.scale_batch)
    job.reject("max_batch", "means nothing without scale_batch");
  if (job.ok() && profile.batch && profile.scale_batch)
    job.reject("batch", "is of all machines, and scale_batch lets it grow with them: want one");
  job.finish();
}

Profile read_profile(Section& root) {
  Profile profile{.name = root.text("name"), .origin = read_origin(root.section("origin"))};
  read_job(root.section("job"), profile);
  if (auto types = root.maybe_section("types")) {
    for (auto& [type, entry] : types->each()) profile.types.emplace(type, read_type(entry, profile.origin.basis));
  }
  if (auto link = root.maybe_section("link")) {
    profile.link = {.request = maybe_rate(*link, "request_mb_per_s"),
                    .pcie = maybe_rate(*link, "pcie_mb_per_s"),
                    .latency = maybe_seconds(*link, "latency_s", Range::non_negative).value_or(Seconds{0}),
                    .overlap = link->maybe_number("overlap", Range::fraction).value_or(0)};
    if (link->has("basis")) profile.link.basis = read_basis(*link, Basis::measured);
    link->finish();
  }
  if (auto server = root.maybe_section("server")) {
    profile.server = {.type = server->maybe_text("type").value_or(""),
                      .network = maybe_rate(*server, "network_mb_per_s"),
                      .cpu = maybe_seconds(*server, "cpu_s_per_update"),
                      .demand = maybe_seconds(*server, "demand_s"),
                      .in_turn = server->maybe_flag("in_turn").value_or(false)};
    if (const auto price = server->maybe_number("usd_per_hour", Range::non_negative)) profile.server.price = {*price};
    if (server->has("basis")) profile.server.basis = read_basis(*server, Basis::measured);
    server->finish();
  }
  if (auto fit = root.maybe_section("contention")) {
    profile.contention = {.slope = fit->number("slope", Range::positive), .offset = fit->number("offset")};
    fit->finish();
  }
  if (auto fit = root.maybe_section("batch_fit")) {
    profile.batch_fit = {.samples_per_mb = fit->number("samples_per_mb", Range::positive),
                         .offset = fit->number("offset")};
    fit->finish();
  }
  if (auto loss = root.maybe_section("loss")) profile.loss = read_loss(*loss);
  if (auto cynthia = root.maybe_section("cynthia")) profile.cynthia = read_cynthia(*cynthia);
  if (auto serverless = root.maybe_section("serverless")) profile.serverless = read_serverless(*serverless);
  if (auto loader = root.maybe_section("loader")) profile.loader = read_loader(*loader);
  if (auto checkpoint = root.maybe_section("checkpoint")) {
    profile.checkpoint = {.data_mb = checkpoint->number("data_mb", Range::positive),
                          .graph_mb = checkpoint->number("graph_mb", Range::non_negative),
                          .stall = maybe_seconds(*checkpoint, "stall_s", Range::non_negative),
                          .write = maybe_seconds(*checkpoint, "write_s", Range::non_negative)};
    checkpoint->finish();
  }
  if (auto pipeline = root.maybe_section("pipeline")) profile.pipeline = read_pipeline(*pipeline);
  if (auto memory = root.maybe_section("memory")) profile.memory = read_memory(*memory);
  if (auto layers = root.maybe_section("layers")) profile.layers = read_layers(*layers);
  if (auto start = root.maybe_section("start")) profile.start = read_start(*start);
  if (auto stalls = root.maybe_section("stalls")) profile.stalls = read_stalls(*stalls);
  profile.recovery = maybe_seconds(root, "recovery_s", Range::non_negative);
  if (profile.exchange == Exchange::pipeline && !profile.pipeline)
    root.reject("pipeline", "missing; job.exchange is pipeline");
  return profile;
}

}  // namespace

Result<Profile> parse_profile(std::string_view text, const std::string& file) {
  return read_document(text, file, "mayfly-profile/1", read_profile);
}

Result<Profile> load_profile(const std::filesystem::path& path) {
  const auto text = load_text(path);
  if (!text) return unexpected(text.error());
  return parse_profile(*text, path.string());
}

}  // namespace mayfly
