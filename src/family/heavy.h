// Regions around one heavy node (matmul, conv, pool, ...): a prologue that is inlined where operands are
// read, and an epilogue that is a chain of element-wise operators and invertible views of the result.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "family/emitter.h"

namespace thrice::family {

struct HeavyRegion {
  ir::NodeId node = -1;
  const ir::Node* op = nullptr;
  ir::ValueId result = ir::kNoValue;  // first result; further ones have its shape
  // Views from the result to each graph output, in order: reshape and transpose nodes.
  std::vector<std::vector<ir::NodeId>> views;
};

// The region's only heavy node, which is one of `ops`. Throws NotMatched with the reason: none, two, an
// output that does not come from it, or an epilogue whose coordinates cannot be led back to the result's.
HeavyRegion find_heavy(const Workload& workload, const std::set<ir::Op>& ops);
Refusal refuse_heavy(const Workload& workload, const std::set<ir::Op>& ops);
// The region whose outputs all come from `node`, with the views between. Throws NotMatched.
HeavyRegion region_behind(const Workload& workload, ir::NodeId node);

// Coordinates of an operand of a matrix product: its batch axes follow the result's, which are `batch`; its
// last two are (row, col).
Coords product_coords(Emitter& e, ir::ValueId operand, ir::ValueId result, const Coords& batch, Index row,
                      Index col);

// Stores every graph output that element `at` of the heavy result decides. `elements` are identifiers of the
// compute type, one a result of the node ("" where it is not wanted).
void emit_epilogue(Emitter& e, const HeavyRegion& region, const Coords& at,
                   const std::vector<std::string>& elements);

// OpenCL only. Writes `epilogue` for whole vectors of a row of results: `at` (an int variable of the kernel,
// first element not yet stored) goes on to `end` by `lanes`, `tile` is the address of its result. Writes
// nothing where the epilogue cannot be written on vectors; what is left from `at` on is the caller's, element
// by element.
void emit_epilogue_lanes(Emitter& e, DType dtype, const std::string& at, const std::string& end, Index lane,
                         int64_t lanes, const std::string& tile,
                         const std::function<void(const std::string& acc)>& epilogue);

// A buffer that kernels may read directly: an input of the region with no prologue, stored in its compute
// type.
bool is_plain_buffer(const Workload& workload, ir::ValueId value);
// An input of the region with no prologue; kernels read its elements as they are stored.
bool is_stored_buffer(const Workload& workload, ir::ValueId value);
// Address of an element of a plain or stored buffer: "(p0 + i3)".
std::string address(Emitter& e, const ProgramDraft& draft, ir::ValueId value, const Coords& coords);

// acc + a * b at the compute type of `dtype`: fused for floats, wrapping for integers.
std::string multiply_add(DType dtype, const std::string& acc, const std::string& a, const std::string& b);
std::string zero_of(DType dtype);
bool computes_in_float(DType dtype);  // f32, f16, bf16: float; f64 is double

}  // namespace thrice::family
