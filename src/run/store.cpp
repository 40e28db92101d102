#include "run/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file.h"

namespace mayfly {
namespace {

constexpr int kLockTries = 40;
constexpr std::chrono::milliseconds kLockAgain{50};

bool locked(int descriptor) {
  for (int tries = 1; ::flock(descriptor, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == kLockTries) return false;
    std::this_thread::sleep_for(kLockAgain);
  }
  return true;
}

}  // namespace

struct Store::Parts {
  std::string path{};
  sqlite3* base = nullptr;
  sqlite3_stmt* insert = nullptr;
  sqlite3_stmt* replace = nullptr;
  sqlite3_stmt* keep = nullptr;
  sqlite3_stmt* begin = nullptr;
  sqlite3_stmt* commit = nullptr;
  int lock = -1;
  std::optional<TimedEvent> last{};  ///< where the last line is a step
  sqlite3_int64 last_row = 0;

  ~Parts() {
    for (sqlite3_stmt* statement : {insert, replace, keep, begin, commit}) sqlite3_finalize(statement);
    sqlite3_close(base);
    if (lock >= 0) ::close(lock);
  }
  Result<void> failed(std::string_view what) const {
    return fail("{}: {}: {}", path, what, base != nullptr ? sqlite3_errmsg(base) : "out of memory");
  }
  Result<void> execute(const char* sql) const {
    if (sqlite3_exec(base, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failed("cannot write");
    return {};
  }
  /// Once for all: reading the statement takes longer than carrying it out.
  Result<void> prepare(const char* sql, sqlite3_stmt** statement) const {
    if (sqlite3_prepare_v3(base, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, nullptr) != SQLITE_OK)
      return failed("cannot prepare");
    return {};
  }
  static void bind(sqlite3_stmt* statement, int place, std::string_view text) {
    sqlite3_bind_text(statement, place, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  Result<void> carry_out(sqlite3_stmt* statement) const {
    const int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    if (code != SQLITE_DONE) return failed("cannot write");
    return {};
  }
  Result<void> add(std::string_view line) {
    bind(insert, 1, line);
    if (const auto ok = carry_out(insert); !ok) return ok;
    last_row = sqlite3_last_insert_rowid(base);
    return {};
  }
};

Store::Store(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const std::filesystem::path& path) {
  auto parts = std::make_unique<Parts>();
  parts->path = path.string();
  // SQLite's own locks guard single writes; this one says that a run is being driven.
  auto lock = open_own_file(parts->path + ".lock", O_RDWR | O_CREAT);
  if (!lock) return unexpected(lock.error());
  parts->lock = lock->release();
  if (!locked(parts->lock)) return fail("{}: another process drives this run", parts->path);
  if (sqlite3_open(parts->path.c_str(), &parts->base) != SQLITE_OK)
    return unexpected(parts->failed("cannot open").error());
  sqlite3_busy_timeout(parts->base, 2000);
  for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
                          "PRAGMA wal_autocheckpoint=10000",  // each one waits for the disk
                          "CREATE TABLE IF NOT EXISTS line(id INTEGER PRIMARY KEY, text TEXT NOT NULL)",
                          "CREATE TABLE IF NOT EXISTS note(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"}) {
    if (const auto ok = parts->execute(sql); !ok) return unexpected(ok.error());
  }
  for (const auto& [sql, statement] :
       {std::pair{"INSERT INTO line(text) VALUES(?1)", &parts->insert},
        {"UPDATE line SET text = ?1 WHERE id = ?2", &parts->replace},
        {"INSERT INTO note(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
         &parts->keep},
        {"BEGIN", &parts->begin},
        {"COMMIT", &parts->commit}}) {
    if (const auto ok = parts->prepare(sql, statement); !ok) return unexpected(ok.error());
  }
  return Store(std::move(parts));
}

Result<void> Store::append(const TimedEvent& event) {
  const auto* step = std::get_if<StepCommitted>(&event.event);
  auto* before = parts_->last ? std::get_if<StepCommitted>(&parts_->last->event) : nullptr;
  if (step != nullptr && before != nullptr && before->generation == step->generation &&
      before->first_sample + before->samples == step->first_sample) {
    TimedEvent joined = event;
    auto& whole = std::get<StepCommitted>(joined.event);
    whole.first_sample = before->first_sample;
    whole.samples += before->samples;
    Parts::bind(parts_->replace, 1, journal_line(joined.time, joined.event));
    sqlite3_bind_int64(parts_->replace, 2, parts_->last_row);
    if (const auto ok = parts_->carry_out(parts_->replace); !ok) return ok;
    parts_->last = joined;
    return {};
  }
  if (const auto ok = parts_->add(journal_line(event.time, event.event)); !ok) return ok;
  parts_->last.reset();
  if (step != nullptr) parts_->last = event;
  return {};
}

Result<void> Store::append(const TimedEvent& event, std::string_view key, std::string_view value) {
  const auto before = parts_->last;
  if (const auto ok = parts_->carry_out(parts_->begin); !ok) return ok;
  auto written = append(event);
  if (written) written = note(key, value);
  if (written) written = parts_->carry_out(parts_->commit);
  if (written) return {};
  parts_->last = before;
  static_cast<void>(parts_->execute("ROLLBACK"));
  return written;
}

Result<void> Store::append_remark(std::string_view journal_line) {
  parts_->last.reset();
  return parts_->add(journal_line);
}

Result<std::vector<std::string>> Store::lines() const {
  sqlite3_stmt* query = nullptr;
  if (sqlite3_prepare_v2(parts_->base, "SELECT text FROM line ORDER BY id", -1, &query, nullptr) != SQLITE_OK)
    return unexpected(parts_->failed("cannot read").error());
  std::vector<std::string> lines;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(query)) == SQLITE_ROW)
    lines.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(query, 0)),
                       static_cast<std::size_t>(sqlite3_column_bytes(query, 0)));
  sqlite3_finalize(query);
  if (code != SQLITE_DONE) return unexpected(parts_->failed("cannot read").error());
  return lines;
}

Result<std::map<std::string, std::string>> Store::notes() const {
  sqlite3_stmt* query = nullptr;
  if (sqlite3_prepare_v2(parts_->base, "SELECT key, value FROM note", -1, &query, nullptr) != SQLITE_OK)
    return unexpected(parts_->failed("cannot read").error());
  const auto column = [&](int number) {
    return std::string(reinterpret_cast<const char*>(sqlite3_column_text(query, number)),
                       static_cast<std::size_t>(sqlite3_column_bytes(query, number)));
  };
  std::map<std::string, std::string> notes;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(query)) == SQLITE_ROW) notes[column(0)] = column(1);
  sqlite3_finalize(query);
  if (code != SQLITE_DONE) return unexpected(parts_->failed("cannot read").error());
  return notes;
}

Result<void> Store::note(std::string_view key, std::string_view value) {
  Parts::bind(parts_->keep, 1, key);
  Parts::bind(parts_->keep, 2, value);
  return parts_->carry_out(parts_->keep);
}

std::optional<std::string> Store::noted(std::string_view key) const {
  sqlite3_stmt* query = nullptr;
  if (sqlite3_prepare_v2(parts_->base, "SELECT value FROM note WHERE key = ?1", -1, &query, nullptr) != SQLITE_OK)
    return std::nullopt;
  sqlite3_bind_text(query, 1, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
  std::optional<std::string> value;
  if (sqlite3_step(query) == SQLITE_ROW)
    value.emplace(reinterpret_cast<const char*>(sqlite3_column_text(query, 0)),
                  static_cast<std::size_t>(sqlite3_column_bytes(query, 0)));
  sqlite3_finalize(query);
  return value;
}

}  // namespace mayfly
