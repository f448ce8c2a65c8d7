// The tuning store: every trial ever made, with the environment it was made in. SQLite; several processes may
// use one file.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/measurement.h"

namespace thrice::store {

class Database;

class Store {
 public:
  // Opens or creates the file and its folder, and brings the schema up to date. A damaged file is renamed to
  // `<path>.damaged-N` and a new one is begun; `notice` then says so (it is empty otherwise): tuning records
  // can be made again, a run must not fail for them. Errors: kIo (permission, disk full), kUnsupported
  // (written by a newer thrice).
  explicit Store(const std::string& path, std::string* notice = nullptr);
  ~Store();

  // Idempotent; returns the key of the description.
  std::string put_environment(const std::string& description_json);
  void add(const artifact::TuningRecord& record);  // durable on return

  // A trial that may take the process with it. begin() keeps `record` (key and schedule are what counts) as
  // failed, "the process ended during this trial"; finish() puts what came of it in its place. Where the
  // process dies in between, that row stays, and nobody tries the schedule again under this key.
  int64_t begin(artifact::TuningRecord record);
  void finish(int64_t begun, const artifact::TuningRecord& record);
  void forget(int64_t begun);  // the trial was not made after all

  // Records of one workload in one environment, oldest first; rows whose digest does not match are left out
  // and counted in damaged_rows().
  std::vector<artifact::TuningRecord> records(const std::string& workload,
                                              const std::string& environment) const;
  // The fastest record that is ok and was verified (0 <= error <= error_limit), at this shape.
  std::optional<artifact::TuningRecord> best(const std::string& workload, const std::string& environment,
                                             const std::string& shape) const;
  std::vector<artifact::TuningRecord> all(
      const std::string& workload_prefix = {}) const;  // every environment
  std::string environment_description(const std::string& key) const;

  // The operator library. Lines are its own text (library/entry.h); the store does not look into them.
  struct Operator {
    std::string id, line, splits;  // splits: names of benchmark sets, separated by commas; may be empty
  };
  struct OperatorBest {
    std::string id, environment, shape;
    std::string line;  // the operator as it was at this shape
    std::string schedule;
    double time_us = 0;
    int64_t unix_time = 0;
  };
  void put_operators(const std::vector<Operator>& operators);  // all or none; replaces those of equal id
  std::vector<Operator> operators() const;                     // by id
  void put_best(const OperatorBest& best);  // replaces that of equal id, environment, shape
  std::vector<OperatorBest> bests() const;  // by id, environment, shape

  // What a workload is at a shape on a device, in words of agents; replaced where it is there. Empty: not
  // known.
  void put_workload_facts(const std::string& workload, const std::string& shape,
                          const std::string& environment, const std::string& facts);
  std::string workload_facts(const std::string& workload, const std::string& shape,
                             const std::string& environment) const;

  // A schedule that passed the full gate: the same text, on the same inputs, in the same environment need not
  // pass it again.
  struct Passed {
    std::string workload, shape, environment, schedule, source_key, gate;
    double error = 0, error_limit = 0;
    int64_t unix_time = 0;
  };
  void put_passed(const Passed& passed);
  // Fills error and error_limit of a key; false: it did not pass yet, or the row is damaged.
  bool find_passed(Passed& passed) const;

  int64_t size() const;                         // rows
  int64_t prune(int64_t older_than_unix_time);  // rows deleted
  int64_t damaged_rows() const { return damaged_; }
  const std::string& path() const { return path_; }

 private:
  std::vector<artifact::TuningRecord> query(const std::string& where,
                                            const std::vector<std::string>& values) const;
  std::string path_;
  std::unique_ptr<Database> db_;
  mutable int64_t damaged_ = 0;
};

}  // namespace thrice::store
