// One segment: stand together, measure, train, measure.

#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "profile/workshop.h"
#include "run/mesh_crew.h"
#include "run/server_crew.h"
#include "run/whole_samples.h"

namespace mayfly {
namespace {

/// Processor time of a process so far, in seconds; fields 14 and 15 of /proc/PID/stat.
double cpu_time(std::int64_t pid) {
  const auto text = load_text(fmt::format("/proc/{}/stat", pid));
  if (!text) return 0;
  const auto name_end = text->rfind(')');
  if (name_end == text->npos) return 0;
  const auto fields = split(trimmed(std::string_view(*text).substr(name_end + 1)), ' ');
  if (fields.size() < 13) return 0;
  const double ticks = parse_number(fields[11]).value_or(0) + parse_number(fields[12]).value_or(0);
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::vector<WorkerId> Workshop::members(int workers) const {
  std::vector<WorkerId> chosen;
  for (const auto& [id, person] : people_) {
    if (!person.server && (workers == 0 || static_cast<int>(chosen.size()) < workers)) chosen.push_back(id);
  }
  return chosen;
}

Result<SegmentResult> Workshop::measure(const Segment& segment, int workers) {
  const auto chosen = members(workers);
  result_ = SegmentResult{};
  for (const WorkerId worker : chosen) result_->workers.push_back({.worker = worker});
  if (auto stood = stand_together(segment, chosen); !stood) return unexpected(stood.error());
  Measure word{.formation = crew_->formation(),
               .data = std::string(name(segment.data)),
               .samples = std::int64_t{segment.steps} * segment.batch * static_cast<std::int64_t>(chosen.size()),
               .layers = segment.layers,
               .batch = segment.batch,
               .exchanges = segment.exchanges,
               .rehearse = segment.rehearse};
  auto looks = ask(word, chosen);
  if (!looks) return unexpected(looks.error());
  result_->looks = *std::move(looks);
  const double cpu = server_cpu();
  if (auto trained = train(segment, chosen); !trained) return unexpected(trained.error());
  result_->server_cpu_s = server_cpu() - cpu;
  const auto used = ask({.formation = crew_->formation()}, chosen);
  if (!used) return unexpected(used.error());
  for (std::size_t i = 0; i < chosen.size(); ++i) result_->workers[i].used = (*used)[i];
  return *std::exchange(result_, std::nullopt);
}

std::unique_ptr<Crew> Workshop::make_crew(const Segment& segment, const std::vector<WorkerId>& members) {
  const auto& train = *options_.spec.train;
  const int together = segment.batch * static_cast<int>(members.size());
  if (options_.servers == 0) {
    auto crew = std::make_unique<MeshCrew>(together, formation_);
    for (const WorkerId worker : members) crew->arrived(worker);
    return crew;
  }
  ServersSpec servers = train.servers.value_or(ServersSpec{});
  servers.count = options_.servers;
  servers.standby = 0;
  const bool waits = servers.sync == ServersSpec::Sync::bsp;
  auto crew = std::make_unique<ServerCrew>(
      ServerCrew::Options{.servers = servers, .batch = waits ? together : segment.batch, .sum = train.sum}, formation_);
  for (const auto& [id, person] : people_) {
    if (person.server) crew->server_ready(id, person.address);
  }
  for (const WorkerId worker : members) crew->arrived(worker);
  return crew;
}

Result<void> Workshop::stand_together(const Segment& segment, const std::vector<WorkerId>& members) {
  const auto start = Clock::now();
  formed_.clear();
  crew_ = make_crew(segment, members);
  if (!crew_->assign(side_by_side(1, members, 0))) crew_->roll_back("", 0, {});
  deliver();
  auto stood = wait_until(
      [&] {
        return crew_->training() &&
               std::all_of(members.begin(), members.end(), [&](WorkerId worker) { return formed_.contains(worker); });
      },
      "the workers to stand together");
  formation_ = crew_->formation();
  result_->form_s = Seconds(Clock::now() - start).count();
  return stood;
}

Result<std::vector<Measurement>> Workshop::ask(const Measure& word, const std::vector<WorkerId>& members) {
  for (const WorkerId worker : members) {
    people_[worker].answer.reset();
    desk_->send(worker, word);
  }
  const auto answered = wait_until(
      [&] {
        return std::all_of(members.begin(), members.end(),
                           [&](WorkerId worker) { return people_[worker].answer.has_value(); });
      },
      "the workers to say what they have used");
  if (!answered) return unexpected(answered.error());
  std::vector<Measurement> answers;
  for (const WorkerId worker : members) answers.push_back(*people_[worker].answer);
  return answers;
}

Result<void> Workshop::train(const Segment& segment, const std::vector<WorkerId>& members) {
  end_ = static_cast<std::int64_t>(segment.steps) * segment.batch * static_cast<std::int64_t>(members.size());
  segment_ = &segment;
  last_commit_ = Clock::now();
  for (const WorkerId worker : members) people_[worker].last = last_commit_;
  crew_->go_on(end_);
  deliver();
  auto trained = wait_until([&] { return crew_->sample() >= end_ && crew_->resting(); }, "a step");
  segment_ = nullptr;
  return trained;
}

void Workshop::note_report(WorkerId from, double wait_s, double compute_s, double exchange_s) {
  if (segment_ == nullptr) return;
  const auto steps = std::find_if(result_->workers.begin(), result_->workers.end(),
                                  [&](const WorkerSteps& one) { return one.worker == from; });
  if (steps == result_->workers.end()) return;
  const auto now = Clock::now();
  steps->step_s.push_back(Seconds(now - *std::exchange(people_[from].last, now)).count());
  steps->wait_s.push_back(wait_s);
  steps->compute_s.push_back(compute_s);
  steps->exchange_s.push_back(exchange_s);
}

void Workshop::commit(const Crew::Step& step) {
  const TimedEvent event{Seconds(Clock::now().time_since_epoch()),
                         StepCommitted{.generation = crew_->formation(),
                                       .first_sample = progress_of(step.range.first),
                                       .samples = progress_of(step.range.count)}};
  const std::string record = crew_->record();
  const auto stored = record.empty() ? store_->append(event) : store_->append(event, "crew", record);
  if (!stored) return lost(stored.error().message);
  crew_->commit();
  const auto now = Clock::now();
  result_->step_s.push_back(Seconds(now - *std::exchange(last_commit_, now)).count());
  result_->losses.push_back(step.loss);
  if (segment_ != nullptr && segment_->enough && segment_->enough(*result_)) end_ = std::min(end_, crew_->sample());
  crew_->go_on(end_);
}

Result<CheckpointWritten> Workshop::checkpoint() {
  if (!crew_) return fail("nothing was trained yet");
  written_.reset();
  crew_->write_checkpoint();
  deliver();
  if (auto done = wait_until([this] { return written_.has_value(); }, "a checkpoint"); !done)
    return unexpected(done.error());
  return *written_;
}

double Workshop::server_cpu() const {
  double sum = 0;
  for (const auto& [id, person] : people_) {
    if (person.server) sum += cpu_time(person.pid);
  }
  return sum;
}

}  // namespace mayfly
