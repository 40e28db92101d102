#include "cli/expected_stalls.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/how_many.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/command.h"
#include "report/expected_stalls_json.h"

namespace mayfly::cli {
namespace {

/// Of findings, for people; all of them are in the JSON.
constexpr std::size_t kFindingsShown = 6;
/// What a network stall is of where no cluster is named, as in Stash.
constexpr int kSeveral = 2;

std::string percent(const Estimate& share) {
  std::string text = fmt::format("{:.1f} %", 100 * share.middle);
  if (share.p10) text += fmt::format(" ({:.0f} .. {:.0f})", 100 * *share.p10, 100 * *share.p90);
  return text;
}

std::string epoch_text(const OutlookAnswer& answer, const StallOutlook& outlook) {
  const auto time = epoch_time(answer.profile, outlook);
  if (!time) return "-";
  return format_duration(Seconds(time->middle));
}

std::string cost_text(const OutlookAnswer& answer, const StallOutlook& outlook,
                      const std::optional<UsdPerHour>& price) {
  const auto cost = epoch_cost(answer.profile, outlook, price);
  if (!cost) return "-";
  std::string text = fmt::format("{:.4g}", cost->middle);
  if (cost->p10) text += fmt::format(" ({:.3g} .. {:.3g})", *cost->p10, *cost->p90);
  return text;
}

void print_rows(const OutlookAnswer& answer) {
  const int several = answer.cluster && answer.cluster->machines > 1 ? answer.cluster->machines : kSeveral;
  Table table({"machine", ">GPUs", "links", ">interconnect stall", "network", fmt::format(">stall of {}", several),
               ">samples/s", ">an epoch", ">USD an epoch", "basis"});
  for (const StallRow& row : answer.table.rows) {
    if (!is_shown(answer, *row.type)) continue;
    const auto& network = row.several ? row.several->network : std::nullopt;
    table.add({row.type->name, fmt::format("{}", row.type->gpu_count), std::string(row.one.interconnect.link),
               row.type->gpu_count > 1 ? percent(row.one.interconnect.share) : "-",
               network ? std::string(network->link) : "unknown", network ? percent(network->share) : "-",
               fmt::format("{:.4g}", row.one.samples_per_s.middle), epoch_text(answer, row.one),
               cost_text(answer, row.one, row.price), std::string(name(row.one.basis))});
  }
  fmt::print("{}", table.text());
}

void print_cluster(const OutlookAnswer& answer) {
  const StallOutlook& all = *answer.cluster;
  Table table({"", ""});
  table.add({"machines", fmt::format("{}", all.machines)});
  table.add({"step", fmt::format("{:.4g} s, {:.4g} s of it computing", all.step, all.alone)});
  table.add({"interconnect stall", percent(all.interconnect.share) + " of the step"});
  if (all.network) {
    const ExchangeTime& parts = *all.network->parts;
    table.add({"network stall", percent(all.network->share) + " of the step"});
    table.add({"", fmt::format("waiting {:.3g} s + latency {:.3g} s + traffic {:.3g} s - hidden {:.3g} s",
                               parts.waiting, parts.latency, parts.traffic, parts.hidden)});
    table.add({"against one machine", fmt::format("{:.2f} x the step", all.slowdown.middle)});
  }
  table.add({"speed", fmt::format("{:.4g} samples/s", all.samples_per_s.middle)});
  table.add({"an epoch", epoch_text(answer, all)});
  table.add({"USD an epoch", cost_text(answer, all, answer.price)});
  fmt::print("{}\n", table.text().substr(1));
}

template <class Finding, class Line>
void print_list(const char* heading, const std::vector<Finding>& findings, Line line) {
  if (findings.empty()) return;
  fmt::print("\n{}\n", heading);
  for (std::size_t i = 0; i < std::min(findings.size(), kFindingsShown); ++i) fmt::print("  {}\n", line(findings[i]));
  if (findings.size() > kFindingsShown) fmt::print("  and {} more (--json)\n", findings.size() - kFindingsShown);
}

void print_findings(const OutlookAnswer& answer) {
  print_list("dearer an hour, and slower", answer.slower, [](const DearerSlower& one) {
    return fmt::format("{} costs {:.2f} x {} and trains at {:.2f} of its speed{}", one.row->type->name,
                       one.row->price->value / one.than->price->value, one.than->type->name,
                       one.row->one.samples_per_s.middle / one.than->one.samples_per_s.middle,
                       one.certain ? "" : " (not certain: the bands meet)");
  });
  print_list("larger, for no more samples a dollar", answer.larger, [](const LargerForLess& one) {
    return fmt::format("{} gives {:.2f} of what {} gives", one.row->type->name, one.ratio, one.than->type->name);
  });
  print_list("as many GPUs in several machines", answer.apart, [](const SpreadOut& one) {
    return fmt::format("{} x {} take {:.2f} x as long as {}{}{}", one.machines, one.type->name, one.slowdown.middle,
                       one.one->type->name,
                       one.slowdown.p10 ? fmt::format(" ({:.2f} .. {:.2f})", *one.slowdown.p10, *one.slowdown.p90) : "",
                       one.cost ? fmt::format(", for {:.2f} x the money", *one.cost) : "");
  });
}

/// The published bounds beside what is found here.
std::string bounds_note(const OutlookAnswer& answer) {
  const auto* inside = most_interconnect(answer);
  const auto* between = most_network(answer);
  return fmt::format(
      "published, on machines that are not told ({}): interconnect stalls of up to {:.0f} % of the time, several "
      "machines up to {:g} x slower than one; here at most {} and {}",
      kPublishedStalls, 100 * kPublishedInterconnectShare, kPublishedNetworkSlowdown,
      inside ? fmt::format("{:.0f} % ({})", 100 * inside->one.interconnect.share.middle, inside->type->name) : "none",
      between ? fmt::format("{:.2f} x ({} x {})", between->slowdown.middle, between->machines, between->type->name)
              : "no pair to compare");
}

void add_notes(OutlookAnswer& answer) {
  const StallTable& table = answer.table;
  const auto unknown = std::count_if(table.rows.begin(), table.rows.end(), [&](const StallRow& row) {
    return is_shown(answer, *row.type) && row.one.interconnect.link == name(GpuLinkKind::unknown);
  });
  if (unknown > 0)
    answer.notes.push_back(fmt::format(
        "of {} types it is not known what connects their GPUs: a slow link is assumed, with a wide band", unknown));
  if (table.no_speed > 0)
    answer.notes.push_back(
        fmt::format("{} left out: nothing measured can be scaled there", how_many(table.no_speed, "type")));
  if (table.too_small > 0)
    answer.notes.push_back(fmt::format("{} left out for memory", how_many(table.too_small, "type")));
  if (std::any_of(table.rows.begin(), table.rows.end(), [](const StallRow& row) { return row.on_demand; }))
    answer.notes.push_back("types without a spot price are counted at their on-demand price");
  const auto retired = std::count_if(table.rows.begin(), table.rows.end(), [&](const StallRow& row) {
    return is_shown(answer, *row.type) && !row.type->retired.empty();
  });
  if (retired > 0)
    answer.notes.push_back(fmt::format("{} of these types clouds offer no longer to new customers", retired));
  if (!answer.profile.samples)
    answer.notes.push_back(
        "no time or cost of an epoch: the profile does not say how many samples it has (job.samples)");
  answer.notes.push_back(bounds_note(answer));
}

/// Of a named cluster only what concerns its machines.
void set_findings(OutlookAnswer& answer) {
  answer.slower = dearer_and_slower(answer.table);
  answer.larger = larger_for_less(answer.table);
  answer.apart = spread_out(answer.profile, answer.catalog, answer.table);
  std::erase_if(answer.slower, [&](const DearerSlower& one) { return !is_shown(answer, *one.row->type); });
  std::erase_if(answer.larger, [&](const LargerForLess& one) { return !is_shown(answer, *one.row->type); });
  std::erase_if(answer.apart, [&](const SpreadOut& one) { return !is_shown(answer, *one.type); });
}

Result<void> set_cluster(OutlookAnswer& answer, const std::vector<MachineCount>& counts) {
  double hourly = 0;
  bool priced = true;
  for (const auto& [type_name, count] : counts) {
    if (count == 0) continue;
    const auto type = find_type(answer.catalog, type_name);
    if (!type) return unexpected(type.error());
    answer.machines.push_back({*type, count});
    const auto& asked = (*type)->price(answer.market);
    const auto& price = asked ? asked : (*type)->on_demand;
    priced = priced && price.has_value();
    if (price) hourly += price->rate.value * count;
  }
  if (answer.machines.empty()) return fail("--cluster: want at least one machine");
  auto outlook = stall_outlook(answer.profile, answer.catalog, answer.machines);
  if (!outlook) return unexpected(outlook.error());
  answer.cluster = *std::move(outlook);
  if (priced) answer.price = UsdPerHour{hourly};
  return {};
}

}  // namespace

int predict_stalls(Profile profile, const Catalog& catalog, Market market, const std::string& cluster, bool json) {
  std::vector<std::string> notes;
  if (profile.exchange == Exchange::pipeline)
    return bad_input({fmt::format("--stalls: profile '{}' has measured shapes of pipelines only", profile.name)});
  if (!profile.parameters)
    return bad_input({fmt::format("--stalls: profile '{}' does not say how large its gradients are (job.parameters_mb)",
                                  profile.name)});
  if (profile.exchange == Exchange::server) {
    profile = exchanging(profile, Exchange::all_reduce, catalog);
    notes.emplace_back("the job exchanges by servers; here its workers reduce among themselves");
  }
  profile.sync = Sync::bsp;
  StallTable table;
  std::vector<MachineCount> counts;
  if (!cluster.empty()) {
    const auto parsed = parse_machines(cluster);
    if (!parsed) return bad_input(parsed.error());
    counts = *parsed;
  }
  OutlookAnswer answer{.profile = profile, .catalog = catalog, .market = market, .table = table, .notes = notes};
  if (const auto set = counts.empty() ? Result<void>() : set_cluster(answer, counts); !set)
    return bad_input(set.error());
  table = stall_table(profile, catalog, market,
                      answer.cluster && answer.cluster->machines > 1 ? answer.cluster->machines : kSeveral);
  if (table.rows.empty())
    return bad_input({fmt::format("--stalls: no type of catalogue '{}' can be predicted for profile '{}'", catalog.name,
                                  profile.name)});
  set_findings(answer);
  add_notes(answer);
  if (json) {
    print_json(expected_stalls_json(answer));
    return kDone;
  }
  if (answer.cluster) print_cluster(answer);
  print_rows(answer);
  print_findings(answer);
  for (const auto& text : answer.notes) note(text);
  return kDone;
}

}  // namespace mayfly::cli
