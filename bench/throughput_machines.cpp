// Several machines against fewer of the same: docs/models.md#fabric.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "base/text.h"
#include "predict/fabric.h"
#include "throughput_links.h"

namespace mayfly::bench {
namespace {

constexpr double kTenthOfNormal = 1.2815515655446004;

/// Two sizes of one cluster.
struct Pair {
  PublishedRun from{};
  PublishedRun to{};
  std::string group{};  ///< who measured: a collection, or "MLPerf"
  std::string submitter{};
  InstanceType type{};
  RingJob job{};
  bool known = true;  ///< the adapters
  bool board = true;  ///< GPUs on a board with NVLink, not cards
  bool recommender = false;
  bool in_order = false;  ///< step in proportion to its samples: only the number of accumulated ones changes, or tokens
  double step = 0;        ///< s, at `from`, with all it accumulates
  double samples = 0;     ///< of a GPU and step at `to`, against `from`
  double longer = 0;      ///< ln of the time of a sample at `to` against `from`
};

std::string plain_text(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool is_fast(const Row& row) {
  static const std::regex kFast("infiniband|\\bib\\b|ib |hdr|ndr|edr|efa");
  return std::regex_search(plain_text(text(row, "network")), kFast);
}

/// B/s of all adapters for computing, as the network's description counts them; 0 where it does not.
double adapters_of(const Row& row) {
  std::string network = plain_text(text(row, "network"));
  std::smatch match;
  if (std::regex_search(network, match, std::regex("compute:? ?(.*?)(?:management|storage|$)")) &&
      match[1].length() > 1)
    network = match[1].str();
  if (contains(network, "storage") && !contains(network, "compute")) return 0;
  double best = 0;
  const std::regex adapter("(\\d+) ?x ([^,;]*)");
  for (std::sregex_iterator one(network.begin(), network.end(), adapter), end; one != end; ++one) {
    const std::string what = (*one)[2].str();
    if (contains(what, "storage") || (contains(what, "ethernet") && !contains(what, "ib"))) continue;
    double gigabits = 0;
    if (std::regex_search(what, match, std::regex("(\\d+) ?g(?:b|e)"))) {
      gigabits = parse_number(match[1].str()).value_or(0);
    } else if (contains(what, "ndr") || contains(what, "connectx-7")) {
      gigabits = 400;
    } else if (contains(what, "hdr") || contains(what, "connectx-6")) {
      gigabits = 200;
    } else if (contains(what, "edr") || contains(what, "connectx-5")) {
      gigabits = 100;
    }
    best = std::max(best, parse_number((*one)[1].str()).value_or(0) * gigabits / 8 * 1e9);
  }
  return best;
}

bool on_board(const Row& row) {
  static const std::set<std::string> kBoards{"V100", "A100", "H100", "H200", "B200", "GB200"};
  return kBoards.contains(text(row, "gpu"));
}

InstanceType machine_of_pair(const Pair& pair, const Catalog& gpus) {
  InstanceType type{.name = "machine", .gpu_count = pair.to.gpus};
  if (const double rate = adapters_of(*pair.to.row); rate > 0) {
    type.fabric = Fabric::infiniband;
    type.fabric_rate = BytesPerSecond{rate};
    return type;
  }
  // What such GPUs are built with, as for a machine that is full of them.
  const Gpu* gpu = gpu_of(*pair.to.row, gpus);
  if (gpu == nullptr && text(*pair.to.row, "gpu") == "GB200") gpu = gpus.find_gpu("GB200-186GB");
  if (gpu == nullptr && text(*pair.to.row, "gpu") == "H200") gpu = gpus.find_gpu("H200-141GB");
  if (gpu != nullptr) type.gpu = *gpu;
  type.gpu_count = std::max(type.gpu_count, text(*pair.to.row, "gpu") == "GB200" ? 4 : 8);
  return type;
}

std::optional<Pair> pair_of(const PublishedRun& from, const PublishedRun& to, const std::string& group,
                            const Catalog& gpus) {
  const std::string& model = text(*to.row, "model");
  const bool sharded = contains(group, "foundry") || group == "torchtitan";
  Pair pair{.from = from, .to = to, .group = group, .submitter = text(*to.row, "submitter")};
  pair.board = !contains(text(*to.row, "gpu_variant"), "PCIe");
  pair.recommender = contains(model, "dlrm");
  pair.known = adapters_of(*to.row) > 0;
  pair.type = machine_of_pair(pair, gpus);
  pair.job = {.gradient_bytes = to.params * 2e6, .uneven = model == "maskrcnn"};
  if (sharded) pair.job.shard = Shard::parameters;
  const double units = sharded ? from.sequence : units_of_sample(from);
  const double gpus_before = from.gpus * from.machines, gpus_after = to.gpus * to.machines;
  pair.step = from.batch * gpus_before / from.speed * units * (sharded ? 1 : from.accumulated);
  pair.samples = to.batch / from.batch * (sharded ? 1 : to.accumulated / from.accumulated);
  pair.in_order = sharded || from.accumulated != to.accumulated;
  pair.longer = std::log(gpus_after / to.speed * from.speed / gpus_before);
  constexpr double kMostApart = 1.6;  // other software, not other machines
  if (std::abs(pair.longer) >= kMostApart || pair.step <= 0) return std::nullopt;
  return pair;
}

using Groups = std::map<std::string, std::vector<PublishedRun>>;

void add_results(const std::vector<Row>& rows, const Catalog& gpus, std::vector<Pair>& pairs) {
  Groups groups;
  for (const Row& row : rows) {
    PublishedRun run = run_of(row);
    const double all = number(row, "accelerators") > 0 ? number(row, "accelerators") : run.gpus * run.machines;
    if (const double global = number(row, "global_batch"); global > 0) run.batch = global / all;
    run.gpus = std::max(1, static_cast<int>(all / run.machines));
    if (!on_board(row) || run.speed <= 0 || run.batch <= 0 || (run.machines > 1 && !is_fast(row))) continue;
    std::smatch round;
    const std::string source = text(row, "source");
    std::regex_search(source, round, std::regex("results_(v[\\d.]+)"));
    groups[key_of(run, {"model", "gpu", "gpu_variant", "submitter"}) + round[1].str()].push_back(run);
  }
  for (const auto& [key, runs] : groups) {
    for (const PublishedRun& from : runs) {
      for (const PublishedRun& to : runs) {
        const bool more = to.machines > from.machines && to.gpus * to.machines > from.gpus * from.machines;
        const bool alike = text(*from.row, "note").substr(0, 12) == text(*to.row, "note").substr(0, 12);
        // Of SSD, rounds counted samples differently.
        const bool counted = text(*to.row, "model") != "ssd" ||
                             from.speed / (from.gpus * from.machines) <= 3 * to.speed / (to.gpus * to.machines);
        if (!more || !alike || !counted || !is_fast(*to.row)) continue;
        if (auto pair = pair_of(from, to, "MLPerf", gpus)) pairs.push_back(*std::move(pair));
      }
    }
  }
}

void add_runs(const std::vector<Row>& rows, const Catalog& gpus, std::vector<Pair>& pairs) {
  Groups groups;
  std::map<std::string, std::string> names;
  for (const Row& row : rows) {
    PublishedRun run = run_of(row);
    if (run.batch <= 0 && contains(text(row, "model"), "efficientnet")) run.batch = 100;
    const std::string& name = run.collection;
    const bool used = name == "DeepLearningExamples" || name == "llm-foundry" || name == "torchtitan";
    if (!used || !on_board(row) || run.batch <= 0 || run.speed <= 0 || contains(text(row, "note"), "SUSPECT")) continue;
    if (run.gpus != 4 && run.gpus != 8 && run.gpus != 16) continue;
    std::string note = std::regex_replace(text(row, "note"), std::regex(";? ?accum.*"), "");
    note = std::regex_replace(note, std::regex("gbs \\d+;|MFU.*|shard \\w+;"), "");
    const std::string key =
        key_of(run, {"source", "model", "precision", "framework", "gpu", "gpu_variant", "gpus_per_node"}) + note;
    groups[key].push_back(run);
    names[key] = name;
  }
  for (const auto& [key, runs] : groups) {
    for (const PublishedRun& from : runs) {
      for (const PublishedRun& to : runs) {
        if (to.machines <= from.machines) continue;
        if (auto pair = pair_of(from, to, names[key], gpus)) pairs.push_back(*std::move(pair));
      }
    }
  }
}

/// ln of the time of a sample at `to` against `from`, as told.
double told_longer(const Pair& pair, const RingFit& fit) {
  const RingLinks links = ring_links(pair.type, pair.job, fit);
  const double before = pair.from.machines;
  const double traffic = ring_traffic(links, pair.from.machines);
  const double shown = traffic - std::min(links.hideable * traffic, links.hides * pair.step);
  const double apart = 1 + ring_stretch(links, static_cast<int>(before));
  const double alone = (pair.step - std::min(shown, pair.step / 2)) / apart;
  const double there = pair.in_order ? alone * pair.samples : time_with_samples(alone, pair.samples, fit);
  const double step = there + time_among_machines(there, pair.to.machines, links);
  return std::log(step / pair.step / pair.samples);
}

/// Wider where the samples of a GPU change.
constexpr double kBandOfSamples = 0.02;
Scaled scaled_pair(const Pair& pair, const RingFit& fit) {
  const RingLinks links = ring_links(pair.type, pair.job, fit);
  const double doublings = std::log2(static_cast<double>(pair.to.machines) / pair.from.machines);
  const double more = pair.in_order ? 0 : kBandOfSamples * std::abs(std::log2(pair.samples));
  return {.error = told_longer(pair, fit) - pair.longer,
          .band = kTenthOfNormal * (links.relative_sd + links.sd_growth * doublings + more)};
}

using WantedPair = std::function<bool(const Pair&)>;

void print_shipped_pairs(const std::vector<Pair>& pairs) {
  const auto row = [&](const std::string& label, const WantedPair& wanted) {
    std::vector<Scaled> found;
    for (const Pair& pair : pairs)
      if (wanted(pair)) found.push_back(scaled_pair(pair, {}));
    print_scaled(label, found);
  };
  print_scaled_heading("Several machines from fewer of the same over InfiniBand or EFA, as shipped (in sample)");
  row("all, GPUs on boards", [](const Pair& pair) { return pair.board; });
  row("all, GPUs on boards, without recommenders", [](const Pair& pair) { return pair.board && !pair.recommender; });
  std::set<std::string> groups, models;
  for (const Pair& pair : pairs) {
    groups.insert(pair.group);
    if (pair.group == "MLPerf") models.insert(text(*pair.to.row, "model"));
  }
  for (const std::string& group : groups)
    row(group + ", GPUs on boards", [&](const Pair& pair) { return pair.board && pair.group == group; });
  const auto contest = [](const Pair& pair) { return pair.group == "MLPerf"; };
  row("MLPerf, boards, without recommenders",
      [&](const Pair& pair) { return contest(pair) && pair.board && !pair.recommender; });
  row("MLPerf, cards", [&](const Pair& pair) { return contest(pair) && !pair.board; });
  row("MLPerf, adapters named", [&](const Pair& pair) { return contest(pair) && pair.known; });
  row("MLPerf, adapters not named", [&](const Pair& pair) { return contest(pair) && !pair.known; });
  row("MLPerf, at least half the samples for each GPU",
      [&](const Pair& pair) { return contest(pair) && pair.samples >= 0.49; });
  row("MLPerf, fewer", [&](const Pair& pair) { return contest(pair) && pair.samples < 0.49; });
  for (const std::string& model : models)
    row("MLPerf, " + model, [&](const Pair& pair) { return contest(pair) && text(*pair.to.row, "model") == model; });
}

RingFit ring_fit_from(const std::vector<double>& x) {
  return {.fast_share = x[0], .spread = x[1], .uneven_spread = x[2], .fixed = x[3], .power = std::min(1.0, x[4])};
}

RingFit fitted_rings(const std::vector<const Pair*>& pairs) {
  std::map<std::string, double> alike;
  const auto kind = [](const Pair& pair) {
    return pair.group + ";" + text(*pair.to.row, "model") + ";" + text(*pair.to.row, "gpu");
  };
  for (const Pair* pair : pairs) ++alike[kind(*pair)];
  RatioFit problem{.start = {0.5, 0.02, 0.04, 0.004, 0.93}};
  for (const Pair* pair : pairs)
    problem.weights.push_back((pair->group == "MLPerf" ? 1.5 : 1.0) / std::sqrt(alike[kind(*pair)]));
  problem.told = [&](const std::vector<double>& x, std::vector<double>& errors) {
    const RingFit fit = ring_fit_from(x);
    for (std::size_t i = 0; i < pairs.size(); ++i) errors[i] = told_longer(*pairs[i], fit) - pairs[i]->longer;
  };
  return ring_fit_from(fitted_ratios(problem));
}

void print_pairs_left_out(const std::vector<Pair>& pairs) {
  print_scaled_heading("The same fitted anew without what was asked for; recommenders left out altogether");
  using Key = std::function<std::string(const Pair&)>;
  const std::vector<std::pair<std::string, Key>> tests{
      {"nothing", [](const Pair&) { return "nothing"; }},
      {"the model", [](const Pair& pair) { return text(*pair.to.row, "model"); }},
      {"the GPU", [](const Pair& pair) { return text(*pair.to.row, "gpu") + (pair.board ? "" : " card"); }},
      {"the source or submitter",
       [](const Pair& pair) { return pair.group == "MLPerf" ? pair.submitter : pair.group; }}};
  for (const auto& [label, key] : tests) {
    std::vector<Scaled> all, board, contest;
    std::set<std::string> folds;
    for (const Pair& pair : pairs) folds.insert(key(pair));
    for (const std::string& fold : folds) {
      std::vector<const Pair*> rest;
      for (const Pair& pair : pairs)
        if (label == "nothing" || key(pair) != fold) rest.push_back(&pair);
      const RingFit fit = fitted_rings(rest);
      for (const Pair& pair : pairs) {
        if (key(pair) != fold) continue;
        all.push_back(scaled_pair(pair, fit));
        if (pair.board) board.push_back(all.back());
        if (pair.group == "MLPerf") contest.push_back(all.back());
      }
    }
    print_scaled(label + " left out", all);
    print_scaled("&nbsp; GPUs on boards", board);
    print_scaled("&nbsp; MLPerf", contest);
  }
}

}  // namespace

void print_machines(const std::vector<Row>& rows, const std::vector<Row>& results, const Catalog& gpus) {
  std::vector<Pair> pairs;
  add_results(results, gpus, pairs);
  add_runs(rows, gpus, pairs);
  std::erase_if(pairs, [](const Pair& pair) { return std::isinf(ring_links(pair.type, pair.job).once); });
  print_shipped_pairs(pairs);
  std::erase_if(pairs, [](const Pair& pair) { return pair.recommender; });
  print_pairs_left_out(pairs);
}

}  // namespace mayfly::bench
