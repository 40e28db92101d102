// Several GPUs of one machine against one of them: docs/models.md#several-gpus.
#include "throughput_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "predict/gpu_links.h"

namespace mayfly::bench {
namespace {

constexpr double kNormalTenth = 1.2815515655446004;

/// A run on several GPUs, and one GPU that did the same.
struct LinkCase {
  PublishedRun run{};
  InstanceType type{};
  std::string link{};  ///< "nvlink", "pcie", "bridge" or "geforce"
  std::string generation{};
  double alone = 0;   ///< s, a step of one GPU
  double longer = 0;  ///< ln of the step on all against it
  bool doubtful = false;
};

/// What the machine is called, without the number of cards and the cloud that rents it.
std::string machine_of(const PublishedRun& run) {
  std::string note = text(*run.row, "note");
  note = note.substr(0, note.find(';'));
  for (const char* pattern :
       {"system: ", "\\b[1-9]\\d*x ?", " NVLink", "LambdaCloud ", "Lambda Cloud  ", "Lambda Cloud ", "Linode Cloud ",
        "Linode ", "1CC ", "DellTexas ", "Dell ", "SMC ", "RAIDZ1 ", "RTX "})
    note = std::regex_replace(note, std::regex(pattern), "");
  while (!note.empty() && note.back() == ' ') note.pop_back();
  return note.substr(std::min(note.size(), note.find_first_not_of(' ')));
}

const Row* facts_of(const PublishedRun& run, const std::vector<Row>& facts) {
  for (const Row& row : facts)
    if (text(row, "gpu") == text(*run.row, "gpu") && text(row, "variant") == text(*run.row, "gpu_variant")) return &row;
  return nullptr;
}

void connect_nvlink(LinkCase& of, double rate, const char* generation) {
  of.link = "nvlink";
  of.generation = generation;
  of.type.nvlink = BytesPerSecond{rate};
}

void connect(LinkCase& of, const std::vector<Row>& facts) {
  const std::string& gpu = text(*of.run.row, "gpu");
  const std::string& variant = text(*of.run.row, "gpu_variant");
  const Row* row = facts_of(of.run, facts);
  const bool board = contains(variant, "SXM");
  of.type.gpu_count = of.run.gpus;
  if ((gpu == "V100" || gpu == "P100") && board) return connect_nvlink(of, 150e9, "NVLink 2");
  if (gpu == "A100" && board) return connect_nvlink(of, 300e9, "NVLink 3");
  if ((gpu == "H100" || gpu == "H200") && board) return connect_nvlink(of, 450e9, "NVLink 4");
  if (gpu == "B200") return connect_nvlink(of, 900e9, "NVLink 5");
  if (contains(text(*of.run.row, "note"), "NVLink")) {
    const double rate = row ? number(*row, "nvlink_gb_s_one_way") : 0;
    connect_nvlink(of, (rate > 0 ? rate : 50) * 1e9, "");
    of.link = "bridge";
    return;
  }
  const std::string pcie = row && !text(*row, "pcie").empty() ? text(*row, "pcie").substr(0, 1) : "3";
  of.type.pcie = BytesPerSecond{pcie == "3" ? 15.75e9 : pcie == "4" ? 31.5e9 : 63e9};
  const bool geforce =
      gpu.starts_with("RTX 20") || gpu.starts_with("RTX 30") || gpu.starts_with("RTX 40") || gpu.starts_with("GTX");
  of.type.peer_to_peer = !geforce;
  of.link = geforce ? "geforce" : "pcie";
  of.generation = geforce ? "" : "PCIe " + pcie;
}

bool compares(const PublishedRun& run) {
  const std::string& note = text(*run.row, "note");
  const std::string& model = text(*run.row, "model");
  for (const char* other : {"llm-foundry", "NeMo", "Bridge"})
    if (contains(text(*run.row, "source"), other)) return false;
  return !contains(note, "SUSPECT") && run.speed > 0 && run.batch > 0 && run.params > 0 &&
         !contains(model, "MaxText") && !contains(model, "sia") && !contains(model, "gavel");
}

std::string same_but_gpus(const PublishedRun& run) {
  return key_of(run, {"source", "model", "precision", "gpu", "gpu_variant", "framework"}) +
         fmt::format("{}", run.sequence);
}

/// The middle speed of one GPU with the same batch; on the same machine where that was measured at all.
double speed_alone(const PublishedRun& run, const std::vector<PublishedRun>& ones) {
  std::vector<const PublishedRun*> alike;
  for (const PublishedRun& one : ones)
    if (contains(text(*run.row, "source"), "lambdal") && machine_of(one) == machine_of(run)) alike.push_back(&one);
  if (alike.empty())
    for (const PublishedRun& one : ones) alike.push_back(&one);
  std::vector<double> speeds;
  for (const PublishedRun* one : alike)
    if (one->batch == run.batch) speeds.push_back(one->speed);
  if (speeds.empty()) return 0;
  std::sort(speeds.begin(), speeds.end());
  const std::size_t middle = speeds.size() / 2;
  return speeds.size() % 2 == 1 ? speeds[middle] : (speeds[middle - 1] + speeds[middle]) / 2;
}

/// Rows that contradict their neighbours: batches counted differently from file to file, one slow host.
bool is_doubtful(const PublishedRun& run) {
  const std::string& model = text(*run.row, "model");
  const bool examples = run.collection == "DeepLearningExamples";
  return (examples && (model == "WaveGlow" || model == "VNet" || model == "MaskRCNN")) ||
         (text(*run.row, "note").starts_with("system: 8x V100 32GB") && model.starts_with("tf_"));
}

std::vector<LinkCase> cases_of(const std::vector<Row>& rows, const std::vector<Row>& facts) {
  std::map<std::string, std::vector<PublishedRun>> ones;
  std::vector<PublishedRun> several;
  for (const Row& row : rows) {
    const PublishedRun run = run_of(row);
    if (!compares(run) || run.machines != 1) continue;
    if (run.gpus == 1) ones[same_but_gpus(run)].push_back(run);
    if (run.gpus > 1) several.push_back(run);
  }
  std::vector<LinkCase> cases;
  for (const PublishedRun& run : several) {
    const double speed = speed_alone(run, ones[same_but_gpus(run)]);
    if (speed <= 0) continue;
    LinkCase made{.run = run, .doubtful = is_doubtful(run)};
    connect(made, facts);
    const double micro_step = run.batch * units_of_sample(run) / speed;
    // Of these the batch is already that of all accumulated steps.
    const bool whole = text(*run.row, "model").starts_with("BERT-seq") && micro_step > 5;
    made.alone = micro_step * (whole ? 1 : run.accumulated);
    made.longer = std::log(speed * run.gpus / run.speed);
    cases.push_back(made);
  }
  return cases;
}

double told(const LinkCase& of, const GpuLinkFit& fit) {
  const double bytes = of.run.params * 1e6 * (of.run.half ? 2 : 4);
  const GpuLinks links = gpu_links(of.type, fit);
  return std::log1p(time_among_gpus(of.alone, of.run.gpus, bytes, links, of.run.uneven, fit) / of.alone);
}

GpuLinkFit fit_from(const std::vector<double>& x) {
  return {.unhidden = std::min(1.0, x[0]),
          .hides = x[1],
          .spread = x[2],
          .uneven_spread = x[3],
          .latency = x[4],
          .nvlink = {x[5], x[6], x[7], x[7]},
          .pcie = {x[8], x[9], x[10]}};
}

GpuLinkFit fitted_links(const std::vector<const LinkCase*>& cases) {
  std::map<std::string, double> alike;
  const auto kind = [](const LinkCase& of) { return text(*of.run.row, "model") + ";" + text(*of.run.row, "gpu"); };
  for (const LinkCase* one : cases) ++alike[kind(*one)];
  RatioFit problem{.start = {0.4, 0.2, 0.03, 0.15, 0.0003, 0.25, 0.25, 0.25, 0.4, 0.4, 0.4}};
  for (const LinkCase* one : cases) problem.weights.push_back(1 / std::sqrt(alike[kind(*one)]));
  problem.told = [&](const std::vector<double>& x, std::vector<double>& errors) {
    const GpuLinkFit fit = fit_from(x);
    for (std::size_t i = 0; i < cases.size(); ++i) errors[i] = told(*cases[i], fit) - cases[i]->longer;
  };
  return fit_from(fitted_ratios(problem));
}

Scaled scaled(const LinkCase& of, const GpuLinkFit& fit) {
  const double more = of.run.uneven ? uneven_sd(of.run.gpus) : 0;
  return {.error = told(of, fit) - of.longer, .band = kNormalTenth * (gpu_links(of.type).relative_sd + more)};
}

using Wanted = std::function<bool(const LinkCase&)>;

void print_shipped(const std::vector<LinkCase>& cases) {
  const auto row = [&](const std::string& label, const Wanted& wanted) {
    std::vector<Scaled> found;
    for (const LinkCase& one : cases)
      if (wanted(one)) found.push_back(scaled(one, {}));
    print_scaled(label, found);
  };
  const auto fast = [](const LinkCase& of) { return of.run.gpus <= 8 && (of.link == "nvlink" || of.link == "pcie"); };
  print_scaled_heading("Several GPUs in a machine from one of them, as shipped (in sample)");
  row("NVLink and PCIe with peer-to-peer, 2 to 8 GPUs", [&](const LinkCase& of) { return fast(of); });
  row("the same without rows that contradict their neighbours",
      [&](const LinkCase& of) { return fast(of) && !of.doubtful; });
  row("the same without networks whose samples differ in size",
      [&](const LinkCase& of) { return fast(of) && !of.run.uneven; });
  row("NVLink", [&](const LinkCase& of) { return fast(of) && of.link == "nvlink"; });
  row("PCIe", [&](const LinkCase& of) { return fast(of) && of.link == "pcie"; });
  const auto cloud = [](const LinkCase& of) { return contains(text(*of.run.row, "note"), "Cloud"); };
  row("PCIe, own machines", [&](const LinkCase& of) { return fast(of) && of.link == "pcie" && !cloud(of); });
  row("PCIe, rented virtual machines, as if peer-to-peer",
      [&](const LinkCase& of) { return fast(of) && of.link == "pcie" && cloud(of); });
  std::vector<Scaled> rented;
  for (LinkCase one : cases) {
    if (!fast(one) || one.link != "pcie" || !cloud(one)) continue;
    one.type.peer_to_peer.reset();
    rented.push_back(scaled(one, {}));
  }
  print_scaled("PCIe, rented virtual machines, nothing said of peer-to-peer", rented);
  std::set<std::string> generations;
  for (const LinkCase& one : cases) generations.insert(one.generation);
  generations.erase("");
  for (const std::string& generation : generations)
    for (const int gpus : {2, 4, 8})
      row(fmt::format("{}, {} GPUs", generation, gpus),
          [&](const LinkCase& of) { return of.generation == generation && of.run.gpus == gpus; });
  for (const std::string link : {"bridge", "geforce"})
    for (const int gpus : {2, 4, 8})
      row(fmt::format("{}, {} GPUs", link == "bridge" ? "NVLink bridges" : "GeForce through the host", gpus),
          [&](const LinkCase& of) { return of.link == link && of.run.gpus == gpus; });
  row("16 GPUs of one machine", [](const LinkCase& of) { return of.run.gpus == 16; });
}

std::string plain(std::string name) {
  std::erase(name, '-');
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

void print_left_out(const std::vector<LinkCase>& cases) {
  print_scaled_heading(
      "The same fitted anew without what was asked for; NVLink and PCIe with peer-to-peer, 2 to 8 GPUs");
  using Key = std::function<std::string(const LinkCase&)>;
  const std::vector<std::pair<std::string, Key>> tests{
      {"nothing", [](const LinkCase&) { return "nothing"; }},
      {"the model", [](const LinkCase& of) { return plain(text(*of.run.row, "model")); }},
      {"the GPU", [](const LinkCase& of) { return text(*of.run.row, "gpu"); }},
      {"the source",
       [](const LinkCase& of) { return of.run.collection == "DeepLearningExamples" ? "examples" : "Lambda"; }}};
  for (const auto& [label, key] : tests) {
    std::vector<Scaled> all, even, nvlink, pcie;
    std::set<std::string> folds;
    for (const LinkCase& one : cases) folds.insert(key(one));
    for (const std::string& fold : folds) {
      std::vector<const LinkCase*> rest;
      for (const LinkCase& one : cases)
        if (!one.doubtful && !one.generation.empty() && (label == "nothing" || key(one) != fold)) rest.push_back(&one);
      const GpuLinkFit fit = fitted_links(rest);
      for (const LinkCase& one : cases) {
        if (one.generation.empty() || one.run.gpus > 8 || key(one) != fold) continue;
        all.push_back(scaled(one, fit));
        if (!one.run.uneven) even.push_back(all.back());
        (one.link == "nvlink" ? nvlink : pcie).push_back(all.back());
      }
    }
    print_scaled(label + " left out", all);
    print_scaled("&nbsp; samples of one size", even);
    print_scaled("&nbsp; NVLink", nvlink);
    print_scaled("&nbsp; PCIe", pcie);
  }
}

}  // namespace

void print_links(const std::vector<Row>& rows, const std::vector<Row>& facts) {
  const std::vector<LinkCase> cases = cases_of(rows, facts);
  print_shipped(cases);
  print_left_out(cases);
}

}  // namespace mayfly::bench
