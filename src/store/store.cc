#include "store/store.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "store/database.h"
#include "store/migrations.h"

namespace thrice::store {

using artifact::TuningRecord;

namespace {

constexpr const char* kEndedDuringTrial =
    "quarantined: the process ended during this trial (a crash, a hang that was killed, or kill -9)";

std::string digest_of(const TuningRecord& r) {
  const artifact::Measurement& m = r.measurement;
  const artifact::Conditions& c = m.conditions;
  // What rows of older versions do not have is no part of their digest.
  std::string later = m.concurrent_us > 0 ? fmt::format("\x1f{:.17g}", m.concurrent_us) : std::string();
  if (m.warm_us >= 0 || m.cold_us >= 0 || c.throttled_samples > 0 || c.sm_mhz >= 0 || c.power_w >= 0 ||
      c.temperature_c >= 0 || c.memory_mhz >= 0 || c.least_sm_mhz >= 0)
    later += fmt::format(
        "\x1f{:.17g}\x1f{:.17g}\x1f{}\x1f{:.17g}\x1f{:.17g}\x1f{:.17g}\x1f{:.17g}\x1f{:.17g}", m.warm_us,
        m.cold_us, c.throttled_samples, c.sm_mhz, c.least_sm_mhz, c.memory_mhz, c.temperature_c, c.power_w);
  return hash_hex(
      fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{:.17g}\x1f{:.17g}\x1f{}\x1f{:.17g}\x1f{:.17g}"
                  "\x1f{:.17g}\x1f{}\x1f{}\x1f{}\x1f{}{}",
                  r.workload, r.shape, r.environment, r.schedule.str(), r.source_key, outcome_name(m.outcome),
                  m.message, m.time_us, m.spread_us, m.samples, m.error, m.error_limit, m.build_ms,
                  m.registers, m.spill_bytes, m.temporary_bytes, r.unix_time, later));
}

void migrate(Database& db, const std::string& path) {
  db.execute("BEGIN IMMEDIATE");
  auto version_row = db.prepare("PRAGMA user_version");
  version_row.step();
  const int64_t version = version_row.integer(0);
  const int64_t newest = static_cast<int64_t>(std::size(kMigrations));
  if (version > newest) {
    db.execute("ROLLBACK");
    throw Error(
        Code::kUnsupported,
        fmt::format("store '{}' has schema {}, this thrice knows {}: it was written by a newer version; "
                    "update thrice or choose another file with --store",
                    path, version, newest));
  }
  for (int64_t v = version; v < newest; ++v) db.execute(kMigrations[v]);
  db.execute(fmt::format("PRAGMA user_version={}", newest));
  db.execute("COMMIT");
}

std::string set_aside(const std::string& path) {
  for (int n = 1;; ++n) {
    const std::string aside = fmt::format("{}.damaged-{}", path, n);
    if (std::filesystem::exists(aside)) continue;
    std::filesystem::rename(path, aside);
    // The write-ahead log belongs to the damaged file; left in place it would be replayed into the new one.
    for (const char* suffix : {"-wal", "-shm"})
      if (std::filesystem::exists(path + suffix)) std::filesystem::rename(path + suffix, aside + suffix);
    return aside;
  }
}

}  // namespace

Store::Store(const std::string& path, std::string* notice) : path_(path) {
  std::error_code error;
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(Code::kIo,
                fmt::format("cannot create folder '{}' of the store: {}", folder.string(), error.message()));
  try {
    db_ = std::make_unique<Database>(path);
    migrate(*db_, path);
  } catch (const Error& e) {
    if (e.code() != Code::kCorrupt) throw;
    db_.reset();
    const std::string aside = set_aside(path);
    if (notice)
      *notice = fmt::format("{}; it was renamed to '{}' and a new store was begun", e.what(), aside);
    db_ = std::make_unique<Database>(path);
    migrate(*db_, path);
  }
}
Store::~Store() = default;

std::string Store::put_environment(const std::string& description) {
  const std::string key = hash_hex(description);
  db_->prepare("INSERT INTO environment(key, description) VALUES(?, ?) ON CONFLICT DO NOTHING")
      .bind(1, key)
      .bind(2, description)
      .step();
  return key;
}

std::string Store::environment_description(const std::string& key) const {
  auto row = db_->prepare("SELECT description FROM environment WHERE key=?");
  return row.bind(1, key).step() ? row.text(0) : std::string();
}

void Store::put_workload_facts(const std::string& workload, const std::string& shape,
                               const std::string& environment, const std::string& facts) {
  db_->prepare(
         "INSERT OR REPLACE INTO workload_facts(workload, shape, environment, facts) VALUES(?, ?, ?, ?)")
      .bind(1, workload)
      .bind(2, shape)
      .bind(3, environment)
      .bind(4, facts)
      .step();
}

std::string Store::workload_facts(const std::string& workload, const std::string& shape,
                                  const std::string& environment) const {
  auto row = db_->prepare("SELECT facts FROM workload_facts WHERE workload=? AND shape=? AND environment=?");
  return row.bind(1, workload).bind(2, shape).bind(3, environment).step() ? row.text(0) : std::string();
}

namespace {

std::string digest_of(const Store::Passed& p) {
  return hash_hex(fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{:.17g}\x1f{:.17g}", p.workload, p.shape,
                              p.environment, p.schedule, p.source_key, p.gate, p.error, p.error_limit));
}

}  // namespace

void Store::put_passed(const Passed& p) {
  db_->prepare("INSERT OR REPLACE INTO passed VALUES(?,?,?,?,?,?,?,?,?,?)")
      .bind(1, p.workload)
      .bind(2, p.shape)
      .bind(3, p.environment)
      .bind(4, p.schedule)
      .bind(5, p.source_key)
      .bind(6, p.gate)
      .bind(7, p.error)
      .bind(8, p.error_limit)
      .bind(9, p.unix_time)
      .bind(10, digest_of(p))
      .step();
}

bool Store::find_passed(Passed& p) const {
  auto row = db_->prepare(
      "SELECT error, error_limit, digest FROM passed WHERE workload=? AND shape=? AND environment=? AND "
      "schedule=? AND source_key=? AND gate=?");
  if (!row.bind(1, p.workload)
           .bind(2, p.shape)
           .bind(3, p.environment)
           .bind(4, p.schedule)
           .bind(5, p.source_key)
           .bind(6, p.gate)
           .step())
    return false;
  p.error = row.real(0);
  p.error_limit = row.real(1);
  return row.text(2) == digest_of(p);
}

void Store::add(const TuningRecord& r) {
  const artifact::Measurement& m = r.measurement;
  db_->prepare(
         "INSERT INTO trial(workload, shape, environment, schedule, source_key, outcome, message, time_us, "
         "spread_us, samples, error, error_limit, "
         "build_ms, registers, spill_bytes, temporary_bytes, unix_time, digest, concurrent_us, warm_us, "
         "cold_us, "
         "throttled_samples, sm_mhz, least_sm_mhz, memory_mhz, temperature_c, power_w) "
         "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
      .bind(1, r.workload)
      .bind(2, r.shape)
      .bind(3, r.environment)
      .bind(4, r.schedule.str())
      .bind(5, r.source_key)
      .bind(6, std::string(outcome_name(m.outcome)))
      .bind(7, m.message)
      .bind(8, m.time_us)
      .bind(9, m.spread_us)
      .bind(10, int64_t{m.samples})
      .bind(11, m.error)
      .bind(12, m.error_limit)
      .bind(13, m.build_ms)
      .bind(14, int64_t{m.registers})
      .bind(15, int64_t{m.spill_bytes})
      .bind(16, m.temporary_bytes)
      .bind(17, r.unix_time)
      .bind(18, digest_of(r))
      .bind(19, m.concurrent_us)
      .bind(20, m.warm_us)
      .bind(21, m.cold_us)
      .bind(22, int64_t{m.conditions.throttled_samples})
      .bind(23, m.conditions.sm_mhz)
      .bind(24, m.conditions.least_sm_mhz)
      .bind(25, m.conditions.memory_mhz)
      .bind(26, m.conditions.temperature_c)
      .bind(27, m.conditions.power_w)
      .step();
}

int64_t Store::begin(TuningRecord r) {
  r.measurement = {};
  r.measurement.outcome = artifact::Outcome::kLaunchFailed;
  r.measurement.message = kEndedDuringTrial;
  add(r);
  return db_->last_row();
}

void Store::finish(int64_t begun, const TuningRecord& r) {
  db_->execute("BEGIN IMMEDIATE");
  try {
    db_->prepare("DELETE FROM trial WHERE id = ?").bind(1, begun).step();
    add(r);
    db_->execute("COMMIT");
  } catch (...) {
    try {
      db_->execute("ROLLBACK");
    } catch (const Error&) {
      // the first failure is the one to tell
    }
    throw;
  }
}

void Store::forget(int64_t begun) { db_->prepare("DELETE FROM trial WHERE id = ?").bind(1, begun).step(); }

std::vector<TuningRecord> Store::query(const std::string& where,
                                       const std::vector<std::string>& values) const {
  auto row = db_->prepare(
      "SELECT workload, shape, environment, schedule, source_key, outcome, message, time_us, spread_us, "
      "samples, error, error_limit, "
      "build_ms, registers, spill_bytes, temporary_bytes, unix_time, digest, concurrent_us, warm_us, "
      "cold_us, "
      "throttled_samples, sm_mhz, least_sm_mhz, memory_mhz, temperature_c, power_w FROM trial WHERE " +
      where + " ORDER BY id");
  for (size_t i = 0; i < values.size(); ++i) row.bind(static_cast<int>(i) + 1, values[i]);
  std::vector<TuningRecord> result;
  while (row.step()) {
    TuningRecord r;
    try {
      r.schedule = artifact::Schedule::parse(row.text(3));
      r.measurement.outcome = artifact::parse_outcome(row.text(5));
    } catch (const Error&) {
      ++damaged_;
      continue;
    }
    r.workload = row.text(0);
    r.shape = row.text(1);
    r.environment = row.text(2);
    r.source_key = row.text(4);
    artifact::Measurement& m = r.measurement;
    m.message = row.text(6);
    m.time_us = row.real(7);
    m.spread_us = row.real(8);
    m.samples = static_cast<int>(row.integer(9));
    m.error = row.real(10);
    m.error_limit = row.real(11);
    m.build_ms = row.real(12);
    m.registers = static_cast<int>(row.integer(13));
    m.spill_bytes = static_cast<int>(row.integer(14));
    m.temporary_bytes = row.integer(15);
    r.unix_time = row.integer(16);
    m.concurrent_us = row.real(18);
    m.warm_us = row.real(19);
    m.cold_us = row.real(20);
    m.conditions.throttled_samples = static_cast<int>(row.integer(21));
    m.conditions.sm_mhz = row.real(22);
    m.conditions.least_sm_mhz = row.real(23);
    m.conditions.memory_mhz = row.real(24);
    m.conditions.temperature_c = row.real(25);
    m.conditions.power_w = row.real(26);
    if (digest_of(r) != row.text(17))
      ++damaged_;
    else
      result.push_back(std::move(r));
  }
  return result;
}

std::vector<TuningRecord> Store::records(const std::string& workload, const std::string& environment) const {
  return query("workload=? AND environment=?", {workload, environment});
}
std::vector<TuningRecord> Store::all(const std::string& workload_prefix) const {
  return query("substr(workload, 1, length(?1)) = ?1", {workload_prefix});
}

std::optional<TuningRecord> Store::best(const std::string& workload, const std::string& environment,
                                        const std::string& shape) const {
  std::optional<TuningRecord> best;
  std::vector<TuningRecord> here = records(workload, environment);
  std::erase_if(here, [&](const TuningRecord& r) { return r.shape != shape; });
  // What passed a trial and failed later, in a duel, is no winner.
  const auto failed = [&](const TuningRecord& candidate) {
    return std::any_of(here.begin(), here.end(), [&](const TuningRecord& r) {
      return r.schedule == candidate.schedule && r.measurement.outcome != artifact::Outcome::kOk;
    });
  };
  for (const TuningRecord& r : here) {
    const artifact::Measurement& m = r.measurement;
    const bool verified = m.error >= 0 && m.error <= m.error_limit;
    if (m.outcome != artifact::Outcome::kOk || !verified || !(m.time_us > 0)) continue;
    if ((!best || m.time_us < best->measurement.time_us) && !failed(r)) best = r;
  }
  return best;
}

int64_t Store::size() const {
  auto row = db_->prepare("SELECT count(*) FROM trial");
  row.step();
  return row.integer(0);
}

int64_t Store::prune(int64_t older_than) {
  db_->prepare("DELETE FROM trial WHERE unix_time < ?").bind(1, older_than).step();
  const int64_t deleted = db_->changes();
  db_->prepare("DELETE FROM passed WHERE unix_time < ?").bind(1, older_than).step();
  db_->execute("DELETE FROM environment WHERE key NOT IN (SELECT environment FROM trial)");
  return deleted;
}

}  // namespace thrice::store
