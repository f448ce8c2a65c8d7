// A thin RAII layer over SQLite: one connection, prepared statements, errors as exceptions that name the
// file.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

struct sqlite3;
struct sqlite3_stmt;

namespace thrice::store {

class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql, const std::string& path);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement& bind(int index, int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, const std::string& value);
  bool step();  // true: a row is there; false: done. Throws kIo (disk full, locked too long), kCorrupt
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  std::string path_;
};

class Database {
 public:
  // Opens or creates; waits up to 10 s for another process's lock (a commit takes milliseconds; only a stuck
  // process holds it longer). Errors: kIo (cannot open, disk full), kCorrupt (not a database, damaged).
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  void execute(const std::string& sql);
  Statement prepare(const std::string& sql) { return Statement(db_, sql, path_); }
  int64_t changes() const;
  int64_t last_row() const;  // id of the last insert of this connection

 private:
  sqlite3* db_ = nullptr;
  std::string path_;
};

}  // namespace thrice::store
