#include "run/journal.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/json.h"

namespace mayfly {

Result<Journal> Journal::create(const std::filesystem::path& path, const std::string& job, UsdPerHour standing) {
  auto opened = open_own_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (!opened) return unexpected(opened.error());
  std::unique_ptr<std::FILE, Close> file(::fdopen(opened->release(), "w"));
  if (!file) return fail("{}: cannot write: {}", path.string(), std::strerror(errno));
  Journal journal(std::move(file));
  Json head{{"format", "mayfly-journal/1"}, {"job", job}};
  if (standing.value > 0) head["standing_usd_per_hour"] = standing.value;
  journal.write(head.dump());
  return journal;
}

void Journal::add(const TimedEvent& event, const std::vector<std::string>& records) {
  const auto* step = std::get_if<StepCommitted>(&event.event);
  auto* before = steps_ ? std::get_if<StepCommitted>(&steps_->event) : nullptr;
  const bool alone = step != nullptr && records.size() == 1;
  if (alone && before != nullptr && before->generation == step->generation &&
      before->first_sample + before->samples == step->first_sample) {
    before->samples += step->samples;
    steps_->time = event.time;
    return;
  }
  flush();
  if (alone && records[0] == journal_line(event.time, event.event)) {
    steps_ = event;
    // The first of a generation says when training went on, and is not kept back.
    if (std::exchange(generation_, step->generation) != step->generation) flush();
    return;
  }
  for (const std::string& line : records) write(line);
  std::fflush(file_.get());
}

void Journal::add_line(const std::string& line) {
  flush();
  write(line);
  std::fflush(file_.get());
}

void Journal::flush() {
  if (!steps_) return;
  write(journal_line(steps_->time, steps_->event));
  steps_.reset();
  std::fflush(file_.get());
}

void Journal::write(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), file_.get());
  std::fputc('\n', file_.get());
}

}  // namespace mayfly
