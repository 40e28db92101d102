#include "train/carrier.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "base/text.h"

namespace mayfly {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

/// With one question: a disk may be slow, and hashing all that the job names takes a while.
constexpr Seconds kAnswerPatience{120};
constexpr Seconds kHashingPatience{3600};
constexpr Seconds kRedial{0.5};
/// A checkpoint whose files were lost on the way is brought again from the beginning.
constexpr int kTries = 3;

std::string refusal(const ToCarrier& answer) {
  if (const auto* undone = std::get_if<Undone>(&answer)) return undone->why;
  if (const auto* refused = std::get_if<Refused>(&answer)) return refused->why;
  return "the controller answered something else";
}

}  // namespace

Carrier::Carrier(Options options) : options_(std::move(options)) {}
Carrier::~Carrier() = default;

bool Carrier::connected(std::string& why) {
  if (link_) return true;
  auto link = connect(loop_, options_.host, options_.port, options_.credentials, Seconds(5));
  if (!link) {
    why = link.error().message;
    return false;
  }
  link_ = *std::move(link);
  closed_.clear();
  link_->start<ToCarrier>({.message =
                               [this](ToCarrier message) {
                                 answer_ = std::move(message);
                                 loop_.stop();
                               },
                           .closed =
                               [this](const std::string& reason) {
                                 closed_ = reason;
                                 loop_.stop();
                               }});
  link_->send<ToController>(Hello{.pid = ::getpid(), .role = "carrier"});
  return true;
}

std::optional<ToCarrier> Carrier::ask_once(const FromCarrier& message, std::string& why) {
  if (!connected(why)) return std::nullopt;
  answer_.reset();
  link_->send<ToController>(std::visit([](const auto& held) { return ToController(FromCarrier(held)); }, message));
  Timer limit(loop_);
  bool late = false;
  limit.start(std::holds_alternative<Browse>(message) ? kHashingPatience : kAnswerPatience, [&] {
    late = true;
    loop_.stop();
  });
  loop_.run();
  if (answer_) return std::exchange(answer_, std::nullopt);
  why = late ? "no answer" : closed_;
  link_.reset();
  return std::nullopt;
}

Result<ToCarrier> Carrier::ask(const FromCarrier& message) {
  const auto limit = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.patience);
  std::string why;
  while (true) {
    if (auto answer = ask_once(message, why)) return *std::move(answer);
    lost_ = Clock::now() >= limit;
    if (lost_) return fail("the controller at {}:{}: {}", options_.host, options_.port, why);
    std::this_thread::sleep_for(kRedial);
  }
}

Result<Shelved> Carrier::browse() {
  auto answer = ask(Browse{});
  if (!answer) return unexpected(answer.error());
  if (auto* shelved = std::get_if<Shelved>(&*answer)) return std::move(*shelved);
  return fail("{}", refusal(*answer));
}

Result<FileSeal> Carrier::fetch(const std::string& name, const fs::path& to, std::optional<std::int64_t> size) {
  const fs::path part = to.string() + ".part";
  auto file = NewFile::create(part);
  if (!file) return unexpected(file.error());
  const auto given_up = [&](const std::string& why) {
    std::error_code ignored;
    fs::remove(part, ignored);
    return fail("{}", why);
  };
  for (std::int64_t offset = 0; !size || offset < *size;) {
    const std::int64_t wanted = size ? std::min(kLongestPiece, *size - offset) : kLongestPiece;
    const auto answer = ask(Fetch{.name = name, .offset = offset, .count = wanted});
    if (!answer) return given_up(answer.error().message);
    const auto* piece = std::get_if<Piece>(&*answer);
    if (piece == nullptr) return given_up(refusal(*answer));
    if (piece->offset != offset) return given_up(name + ": another piece came");
    if (auto written = file->write(piece->bytes); !written) return given_up(written.error().message);
    offset += static_cast<std::int64_t>(piece->bytes.size());
    if (static_cast<std::int64_t>(piece->bytes.size()) < wanted) break;
  }
  const auto seal = file->close();
  if (!seal) return given_up(seal.error().message);
  std::error_code error;
  fs::rename(part, to, error);
  if (error) return given_up(fmt::format("{}: {}", to.string(), error.message()));
  return *seal;
}

Result<void> Carrier::bring_file(const std::string& checkpoint, const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail("{}: cannot be read", path.string());
  Bring piece{.checkpoint = checkpoint, .file = path.filename().string()};
  do {
    piece.bytes.resize(static_cast<std::size_t>(kLongestPiece));
    file.read(piece.bytes.data(), kLongestPiece);
    if (file.bad()) return fail("{}: cannot be read", path.string());
    piece.bytes.resize(static_cast<std::size_t>(file.gcount()));
    const auto answer = ask(piece);
    if (!answer) return unexpected(answer.error());
    if (!std::holds_alternative<Taken>(*answer)) return fail("{}", refusal(*answer));
    piece.offset += static_cast<std::int64_t>(piece.bytes.size());
  } while (piece.bytes.size() == static_cast<std::size_t>(kLongestPiece));
  return {};
}

Result<std::string> Carrier::bring(const fs::path& checkpoint) {
  const std::string name = checkpoint.filename().string();
  Result<void> brought;
  // A controller that was started anew knows nothing of what its predecessor had taken.
  for (int i = 0; i < kTries; ++i) {
    std::error_code error;
    brought = {};
    for (const auto& entry : fs::directory_iterator(checkpoint, error)) {
      if (brought) brought = bring_file(name, entry.path());
    }
    if (error) return fail("{}: {}", checkpoint.string(), error.message());
    if (lost_) return unexpected(brought.error());
    if (!brought) continue;
    const auto answer = ask(Keep{.checkpoint = name});
    if (!answer) return unexpected(answer.error());
    if (const auto* kept = std::get_if<Kept>(&*answer)) return kept->path;
    brought = fail("{}", refusal(*answer));
  }
  return unexpected(brought.error());
}

}  // namespace mayfly
