// Trials as a CSV file: what `thrice optimize --record` writes and `--replay` reads. One line a trial, in the
// order in which they were made; text fields are quoted where CSV asks for it.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "artifact/measurement.h"

namespace thrice::store {

struct LoggedTrial {
  std::string workload, shape;  // as in TuningRecord
  std::string region;           // its first name in the model
  int64_t uses = 1;             // regions of the model that share the workload
  bool is_default = false;      // the rule-chosen schedule
  artifact::Schedule schedule;
  artifact::Measurement measurement;
};

// Appends; each line is handed to the operating system before add() returns, so a killed process loses
// nothing that was added. One thread at a time.
class TrialLog {
 public:
  // A new file, or one of an earlier run: its last line is taken away where it was cut. Errors: kIo;
  // kInvalidArgument where the file is something else.
  explicit TrialLog(const std::string& path);
  ~TrialLog();
  TrialLog(const TrialLog&) = delete;
  void add(const LoggedTrial& trial);  // Errors: kIo

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

// Reads such a file; a last line that was cut is left out. Also reads a table of one space with a column for
// each parameter and a last column `time` in ms, nan where a configuration failed (tests/data/README.md,
// `spaces`): one workload named as the file, its first good line as the default. Errors: kNotFound, kIo,
// kCorrupt with the line.
std::vector<LoggedTrial> read_trial_log(const std::string& path);

}  // namespace thrice::store
