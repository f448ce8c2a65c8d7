// Where each node runs: on the device, nowhere (its bytes are its operand's, or its value is shape arithmetic
// that binding sees through), or on the host.
#pragma once
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace thrice::analysis {

enum class Place {
  kNowhere,  // shape arithmetic whose value inference knows, or dead: binding recomputes it, nothing is
             // launched
  kDevice,
  kAlias,  // reshape, identity: same bytes
  kHost,   // data-dependent sizes, host operators, shape arithmetic that inference does not see through
  kControl,
};

struct Placement {
  std::vector<Place> nodes;          // by node index
  std::vector<uint8_t> host_values;  // by value id: its value must be on the host to bind some node (shape
                                     // operands and what host nodes read)
  std::vector<uint8_t>
      device_values;  // by value id: some device node, control node or the caller reads its bytes
};

// REQUIRES: infer_graph ran. `runs_on_device` says whether a device family could run the single node; where
// not, the node is placed on the host (the caller decides whether that is allowed). Cost: linear.
Placement place(const ir::Graph& graph, const std::function<bool(const ir::Node&)>& runs_on_device);

}  // namespace thrice::analysis
