// One full choice of a kernel's parameters, and the set to choose from. Plain values: printed, parsed,
// stored, replayed.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace thrice::artifact {

struct Schedule {
  std::string family;                                   // "matmul"
  std::string tactic;                                   // "tiled": the algorithm within the family
  std::vector<std::pair<std::string, int64_t>> values;  // in the order of the space's parameters

  int64_t get(const std::string& name) const;  // throws kInternal when absent
  int64_t get(const std::string& name, int64_t otherwise) const;
  void set(const std::string& name, int64_t value);
  std::string str() const;                         // "matmul/tiled tile_m=64 tile_n=64"
  static Schedule parse(const std::string& text);  // inverse of str; throws kCorrupt
  bool operator==(const Schedule&) const = default;
};

struct Parameter {
  std::string name;
  std::vector<int64_t> choices;  // ascending; neighbours in this list are neighbours for local search
  int first = -1;                // place of the choice that a tactic is tried with first; -1: the middle one
};

// All schedules of one tactic are the product of its parameters' choices, less the illegal ones.
struct TacticSpace {
  std::string family, tactic;
  std::vector<Parameter> parameters;
};
struct ScheduleSpace {
  std::vector<TacticSpace> tactics;
  int64_t size() const;  // product, illegal ones counted
};

}  // namespace thrice::artifact
