// One operator of the library: what a network computes at one place, written as one line of text.
//
//   a3f29c81d0e4b7c2 | Conv | f32 | window | fixed | f32[s0,64,56,56] f32[64,64,3,3]w | conv(0,1)
//   pads=1,1,1,1 | s0=1..64@1 | bytes=1753088 flops=231211008 ... | resnet18,resnet50
//
// (one line in a file). Columns: id | kind | dtype | pattern | length | operands | nodes | extents | features
// | networks.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace thrice::library {

// Smallest and largest extent that networks give a symbol, and one that stands for them (features,
// benchmarks).
struct Range {
  int64_t low = 1, high = 1, typical = 1;
  bool operator==(const Range&) const = default;
};

// Sizes that decide how an operator is best run: "bytes", "flops", "rows", "cols", "depth", ... at typical
// extents.
using Features = std::map<std::string, double>;

struct Entry {
  std::string id;         // 16 hex digits of the workload's structural hash: equal structure, equal id
  std::string kind;       // the model's operator: "Conv"; of several that run together "Conv+Relu"
  std::string dtype;      // of the first result
  std::string pattern;    // pattern_names(): how its work-items depend on each other
  bool variable = false;  // an extent other than the number of samples is known at run time only
  std::string operands;   // "f32[s0,64,56,56] f32[64,64,3,3]w": w = a weight; s0, s1: extents of run time
  std::string nodes;  // "conv(0,1) pads=1,1,1,1; add(2,3:f32)": operands by number, then each node's result
  std::map<std::string, Range> extents;
  Features features;
  std::vector<std::string> networks;  // where it was found, sorted

  bool operator==(const Entry&) const = default;
  // What makes an operator distinct: everything but id, features and networks.
  std::string identity() const;
};

// "elementwise", "broadcast", "layout", "gather", "scatter", "reduction", "row", "product", "window",
// "sample", "scan", "sort".
const std::vector<std::string>& pattern_names();

std::string to_line(const Entry& entry);
// Inverse. Throws kInvalidArgument saying which column is wrong, and how it should look.
Entry from_line(const std::string& line);

// How different two operators are for a tuner: the sum of |log2| of their sizes' quotients over all features
// of either, and a little for each node more. Infinity where kind of core, pattern or dtype differ: schedules
// of one say nothing about the other.
double distance(const Entry& a, const Entry& b);
// The operator that decides the schedule: "conv", "matmul", or the pattern where there is none.
std::string core_of(const Entry& entry);

}  // namespace thrice::library
