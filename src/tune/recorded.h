// A space with a table of outcomes: every configuration was measured once, so that a search is a look-up.
#pragma once
#include <string>
#include <vector>

#include "tune/space.h"

namespace thrice::tune {

struct RecordedSpace {
  std::string name, group;  // group: spaces with the same parameters (the kernel); name adds the device
  std::string family;  // where it is one of ours (first column `tactic`): schedules are its own; else empty
  Space space;
  std::vector<double> times;   // by place in space.listed(), ms; NaN: did not build or run
  std::vector<double> sorted;  // of those that ran, ascending
  std::vector<std::pair<std::string, double>> device;  // features of meta.json; may be empty
  double optimum() const { return sorted.front(); }
};

// Reads one file, plain or .gz: a table with a column for each parameter and then `time` in ms (what follows
// it is for readers; a first column `tactic` holds names, and parameters that one does not use are 0 there);
// a T4 results file ("results": [{"configuration", "times" or "measurements", "invalidity"}]); or a Kernel
// Tuner cache ("tune_params_keys", "cache": {"1,2": {"time"}}). Words become numbers in the order of their
// spelling. `name`: of the file without its endings. Errors: kNotFound, kIo, kCorrupt with the place.
RecordedSpace read_space(const std::string& path);
// A whole file; what ends in .gz is unpacked. Errors: kNotFound, kIo, kCorrupt.
std::string read_plain_or_gz(const std::string& path);
// Every space of a folder by name, with features from its meta.json where there is one; or one file.
std::vector<RecordedSpace> read_spaces(const std::string& path);

// A space of 4.7 million configurations that no table holds: a product model with interactions, and legal is
// what fits shared memory and divides evenly (docs/agent.md). Its optimum comes from going through all.
struct SyntheticSpace {
  Space space;
  double optimum = 0;
  int64_t legal = 0;
  double time(const Point& point) const;
};
SyntheticSpace make_synthetic_space();

}  // namespace thrice::tune
