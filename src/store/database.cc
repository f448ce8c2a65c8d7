#include "store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <thrice/status.h>

#include <chrono>
#include <thread>

namespace thrice::store {

namespace {

[[noreturn]] void fail(sqlite3* db, int result, const std::string& path) {
  const std::string message = db ? sqlite3_errmsg(db) : sqlite3_errstr(result);
  const int kind = result & 0xff;
  if (kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB)
    throw Error(Code::kCorrupt, fmt::format("store '{}' is damaged: {}", path, message));
  if (kind == SQLITE_FULL)
    throw Error(
        Code::kIo,
        fmt::format("store '{}': no space left on the disk; free some or set another folder with --store",
                    path));
  throw Error(Code::kIo, fmt::format("store '{}': {}", path, message));
}

void check(sqlite3* db, int result, const std::string& path) {
  if (result != SQLITE_OK) fail(db, result, path);
}

constexpr int kPatienceMs = 10000;  // for another process to finish its transaction

// Two processes that create one store at once meet here: SQLite's own waiting does not cover the change of
// the journal's mode.
void use_wal(sqlite3* db, const std::string& path) {
  constexpr int kPauseMs = 5;
  int result = SQLITE_BUSY;
  for (int waited = 0; waited <= kPatienceMs; waited += kPauseMs) {
    result = sqlite3_exec(db, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr);
    if ((result & 0xff) != SQLITE_BUSY) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
  check(db, result, path);
}

}  // namespace

Statement::Statement(sqlite3* db, const std::string& sql, const std::string& path) : db_(db), path_(path) {
  check(db_, sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement_, nullptr), path_);
}
Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int index, int64_t value) {
  check(db_, sqlite3_bind_int64(statement_, index, value), path_);
  return *this;
}
Statement& Statement::bind(int index, double value) {
  check(db_, sqlite3_bind_double(statement_, index, value), path_);
  return *this;
}
Statement& Statement::bind(int index, const std::string& value) {
  check(db_,
        sqlite3_bind_text(statement_, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT),
        path_);
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  fail(db_, result, path_);
}
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data ? std::string(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string();
}

Database::Database(const std::string& path) : path_(path) {
  const int result = sqlite3_open_v2(
      path.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  if (result != SQLITE_OK) {
    sqlite3* db = db_;
    const std::string message = db ? sqlite3_errmsg(db) : "out of memory";
    sqlite3_close(db);
    throw Error(Code::kIo, fmt::format("cannot open store '{}': {}", path, message));
  }
  sqlite3_busy_timeout(db_, kPatienceMs);
  // WAL lets a reader go on while another process writes; NORMAL loses at most the last commit at a power
  // cut, never the file.
  try {
    use_wal(db_, path_);
    execute("PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;");
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}
Database::~Database() { sqlite3_close(db_); }

void Database::execute(const std::string& sql) {
  const int result = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) fail(db_, result, path_);
}
int64_t Database::last_row() const { return sqlite3_last_insert_rowid(db_); }
int64_t Database::changes() const { return sqlite3_changes64(db_); }

}  // namespace thrice::store
