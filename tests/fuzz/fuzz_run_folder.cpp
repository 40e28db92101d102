#include <array>
#include <fstream>

#include "drill/drill_parts.h"
#include "fuzz/fuzz.h"
#include "report/exhibits.h"
#include "status/folder.h"
#include "status/summary.h"
#include "support/temp_folder.h"

// The folder of a run in which one file is not what a run writes: the first byte says which.
namespace {

using mayfly::fuzz::require;

constexpr std::array kFiles{"summary.json", "status.json",   "plan.json",
                            "request.json", "journal.jsonl", "processes.json"};

void look(const std::filesystem::path& folder) {
  const auto summary = mayfly::load_summary(folder);
  require(summary || !summary.error().message.empty(), "an error has a message");
  if (summary) static_cast<void>(mayfly::summary_json(*summary));
  for (const auto lose : {mayfly::DrillRequest::Lose::workers, mayfly::DrillRequest::Lose::server,
                          mayfly::DrillRequest::Lose::controller}) {
    const auto victims = mayfly::drill_victims({.directory = folder, .lose = lose, .all = true});
    if (!victims) continue;
    for (const auto& victim : *victims) mayfly::fuzz::require(victim.process.pid > 0, "who is taken is a process");
  }
  static_cast<void>(mayfly::run_json(mayfly::view_run(folder)));
  const auto report = mayfly::load_exhibits({folder}, nullptr);
  require(report || !report.error().message.empty(), "an error has a message");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const mayfly::support::TempFolder folder;
  const auto journal = folder.path() / "journal.jsonl";
  std::ofstream(journal) << "{\"format\":\"mayfly-journal/1\",\"job\":\"count\"}\n";
  const auto path = folder.path() / kFiles[data[0] % kFiles.size()];
  std::ofstream(path, std::ios::binary) << mayfly::fuzz::text_of(data + 1, size - 1);
  look(folder.path());
  std::filesystem::remove(path);
  return 0;
}
