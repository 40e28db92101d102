// What was measured, as a profile: docs/formats.md#profile.

#include <cmath>

#include "base/least_squares.h"
#include "profile/fresh.h"
#include "profile/log_fit.h"
#include "profile/measure.h"

namespace mayfly {
namespace {

Json origin_json(const JobMeasurement& found, const ProfileRequest& request) {
  Json origin{
      {"basis", "measured"},
      {"source", fmt::format("mayfly profile {}: {} worker{} with {} core{} each", request.job_file.filename().string(),
                             found.workers, found.workers == 1 ? "" : "s", found.cores, found.cores == 1 ? "" : "s")},
      {"date", request.date},
      {"job", text_hash(request.job_text)},
      {"machine", machine_name()}};
  if (!found.notes.empty()) origin["notes"] = found.notes;
  return origin;
}

Json job_json(const JobMeasurement& found, const ProfileRequest& request) {
  const TrainSpec& train = *request.spec.train;
  Json job{{"model", train.model.name},
           {"dataset", train.data.name},
           {"samples", found.ready.samples},
           {"parameters_mb", static_cast<double>(found.ready.parameters) * kBytesPerParameter / 1e6},
           {"tensors", std::max(1, found.look.tensors)},
           {"sync", workers_wait(train) ? "bsp" : "asp"},
           {"exchange", train.servers ? "server" : "all-reduce"}};
  if (workers_wait(train)) job["batch"] = train.batch;
  return job;
}

Json type_json(const JobMeasurement& found) {
  const MeasuredBatch& own = found.batches.front();
  Json type{{"batch", own.batch}, {"step_s", own.step.mean}, {"compute_s", own.compute.mean}};
  if (own.step.relative_sd > 0) type["relative_sd"] = own.step.relative_sd;
  if (found.look.gflops > 0) type["gflops"] = found.look.gflops;
  if (found.ring.bytes_per_s > 0) type["network_mb_per_s"] = found.ring.bytes_per_s / 1e6;
  type["cores"] = found.cores;
  for (const MeasuredBatch& one : found.batches) {
    if (one.step.counted == 0) continue;
    Json point{{"batch", one.batch}, {"step_s", one.step.mean}, {"interval_s", one.step.interval}};
    if (one.compute.mean > 0) point["compute_s"] = one.compute.mean;
    if (one.peak_mb > 0) point["peak_mb"] = one.peak_mb;
    point["steps"] = one.step.counted;
    type["batches"].push_back(std::move(point));
  }
  type["basis"] = "measured";
  return type;
}

/// A line through the peaks; none where it does not rise.
std::optional<Json> memory_json(const JobMeasurement& found) {
  std::vector<double> rows;
  std::vector<double> peaks;
  for (const MeasuredBatch& one : found.batches) {
    if (one.peak_mb <= 0) continue;
    rows.insert(rows.end(), {1.0, static_cast<double>(one.batch)});
    peaks.push_back(one.peak_mb);
  }
  if (peaks.size() < 3) return std::nullopt;
  const auto line = linear_least_squares(rows, 2, peaks);
  if (!line || (*line)[1] <= 0 || (*line)[0] < 0) return std::nullopt;
  double squares = 0;
  for (std::size_t i = 0; i < peaks.size(); ++i)
    squares += std::pow((*line)[0] + (*line)[1] * rows[2 * i + 1] - peaks[i], 2);
  return Json{{"fixed_mb", (*line)[0]},
              {"mb_per_sample", (*line)[1]},
              {"residual_mb", std::sqrt(squares / static_cast<double>(peaks.size() - 2))},
              {"device", "host"},
              {"basis", "measured"}};
}

Json loader_json(const JobMeasurement& found) {
  if (!found.stages || found.stages->rehearsed == 0 || found.stages->read_s <= 0 || found.stages->prepare_s <= 0)
    return {};
  const Measurement& stages = *found.stages;
  const auto samples = static_cast<double>(stages.rehearsed);
  Json loader{{"prep_samples_per_s_per_vcpu", samples / stages.prepare_s},
              {"fetch_samples_per_s", samples / stages.read_s},
              {"basis", "measured"}};
  if (stages.rehearsed_mb <= 0) return loader;
  loader["sample_bytes"] = stages.rehearsed_mb * 1e6 / samples;
  loader["storage_mb_per_s"] = stages.rehearsed_mb / stages.read_s;
  if (stages.reread_s > 0) loader["memory_mb_per_s"] = stages.rehearsed_mb / stages.reread_s;
  return loader;
}

Json layers_json(const JobMeasurement& found) {
  Json list = Json::array();
  const Measurement& look = found.look;
  for (std::size_t i = 0; i < look.layers.size(); ++i) {
    list.push_back({{"name", look.layers[i]},
                    {"forward_s", look.layer_forward_s[i]},
                    {"backward_s", look.layer_backward_s[i]},
                    {"parameters", look.layer_parameters[i]},
                    {"output_mb", look.layer_output_mb[i]}});
  }
  return {{"batch", found.batches.front().batch}, {"list", std::move(list)}};
}

Json loss_json(const JobMeasurement& found) {
  const LossCurve& curve = found.loss->curve;
  Json loss{{"form", "common-start"},
            {"initial", curve.initial},
            {"batch_slope", curve.batch_slope},
            {"scale", curve.scale},
            {"floor", curve.floor}};
  if (curve.workers_power) loss["workers_power"] = *curve.workers_power;
  if (curve.relative_sd > 0) loss["relative_sd"] = curve.relative_sd;
  return loss;
}

}  // namespace

Json profile_of(const JobMeasurement& found, const ProfileRequest& request) {
  Json profile{{"format", "mayfly-profile/1"},
               {"name", request.spec.name.empty() ? request.job_file.stem().string() : request.spec.name},
               {"origin", origin_json(found, request)},
               {"job", job_json(found, request)},
               {"types", {{request.type, type_json(found)}}}};
  Json link;
  if (found.request_mb_per_s) link["request_mb_per_s"] = *found.request_mb_per_s;
  // All tensors travel as one.
  if (found.ring.bytes_per_s > 0) link["latency_s"] = found.ring.latency_s / std::max(1, found.look.tensors);
  if (!link.empty()) link["basis"] = "measured";
  if (!link.empty()) profile["link"] = link;
  if (found.server_cpu_s) {
    profile["server"] = {{"basis", "measured"}, {"in_turn", true}};
    if (*found.server_cpu_s > 0) profile["server"]["cpu_s_per_update"] = *found.server_cpu_s;
    if (const std::string& type = request.spec.train->servers->type; !type.empty()) profile["server"]["type"] = type;
  }
  if (auto memory = memory_json(found)) profile["memory"] = *std::move(memory);
  if (Json loader = loader_json(found); !loader.empty()) profile["loader"] = std::move(loader);
  if (!found.look.layers.empty()) profile["layers"] = layers_json(found);
  if (found.loss) profile["loss"] = loss_json(found);
  if (found.checkpoint && found.checkpoint->size_mb > 0)
    profile["checkpoint"] = {{"data_mb", found.checkpoint->size_mb},
                             {"graph_mb", 0},
                             {"stall_s", found.checkpoint->stall_s},
                             {"write_s", found.checkpoint->write_s}};
  profile["start"] = {{"process_s", found.start_s}, {"load_s", found.ready.load_s}, {"join_s", found.form_s}};
  // Who goes is missed at once; the others stand together anew.
  profile["recovery_s"] = found.form_s;
  return profile;
}

}  // namespace mayfly
