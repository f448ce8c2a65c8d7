// A plan: which nodes run together, by which schedule, in what order. Refers to graph nodes and values by
// index.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "artifact/schedule.h"

namespace thrice::artifact {

// What a step of a segment does.
enum class StepKind {
  kRegion,   // launch the region's kernels
  kAlias,    // outputs share the input's bytes (reshape, identity): no launch
  kHost,     // evaluate the node on the host (shape arithmetic that inference does not see through,
             // data-dependent sizes, --allow-slow)
  kControl,  // if / loop / scan: runs plans of the bodies
};

// A schedule for some lengths: values of the plan's `bucket_symbol` up to `up_to`, above the bucket before.
struct Bucket {
  int64_t up_to = 0;
  Schedule schedule;
};

struct PlanStep {
  StepKind kind = StepKind::kRegion;
  std::vector<int32_t> nodes;   // topological; one node for kAlias, kHost, kControl
  std::string workload;         // structural hash, for kRegion
  Schedule schedule;            // for kRegion: for lengths beyond all buckets
  bool slow = false;            // kHost by --allow-slow: marked in every report
  std::vector<Bucket> buckets;  // ascending; empty: `schedule` serves every length
};

// A segment ends where the host must look at a value. Steps within one run without host synchronisation and
// replay as one graph.
struct Segment {
  std::vector<PlanStep> steps;
};

struct Plan {
  int version = 1;
  std::string graph_hash;     // structural hash of the graph it was made for
  std::string planner;        // "greedy", "original"
  std::string bucket_symbol;  // the symbolic extent that buckets of steps are about; "" = there are none
  std::vector<Segment> segments;
  // Plans of the bodies of control nodes: (node index, body index) -> plan, in node order.
  struct Body {
    int32_t node = 0, body = 0;
    std::vector<Plan> plan;
  };  // plan holds exactly one (vector for recursion)
  std::vector<Body> bodies;

  std::string to_json() const;                     // stable: equal plans give equal text
  static Plan from_json(const std::string& text);  // throws kCorrupt
  std::string digest() const;                      // of to_json
};

}  // namespace thrice::artifact
