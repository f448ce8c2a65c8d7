// Inside of the evaluator: one function an operator group, and the few things that all groups need.
#pragma once
#include "ir/evaluate.h"

namespace thrice::ir {

using Operands = std::vector<ArrayPtr>;
using Results = std::vector<ArrayPtr>;

// Each serves the operators of its class (docs/ops.md); evaluate_node chooses. Operands as in evaluate_node.
Results evaluate_elementwise(const Node& node, const Operands& operands);
Results evaluate_cast(const Node& node, const Operands& operands);
Results evaluate_view(const Node& node, const Operands& operands);
Results evaluate_gather(const Node& node, const Operands& operands);
Results evaluate_reduce(const Node& node, const Operands& operands);
Results evaluate_matmul(const Node& node, const Operands& operands);
Results evaluate_conv(const Node& node, const Operands& operands);
Results evaluate_conv_transpose(const Node& node, const Operands& operands);
Results evaluate_pool(const Node& node, const Operands& operands);
Results evaluate_resize(const Node& node, const Operands& operands);
Results evaluate_sample(const Node& node, const Operands& operands);  // grid_sample, roi_align
Results evaluate_delta_rule(const Node& node, const Operands& operands);
Results evaluate_select(const Node& node, const Operands& operands);  // scan_sum, top_k, scatter*
Results evaluate_host(const Node& node, const Operands& operands);    // shape, nonzero, unique, compress, ...
Results evaluate_random(const Node& node, const Operands& operands);
Results evaluate_strings(const Node& node, const Operands& operands);  // host_function

// Zero-filled array. Throws kOutOfMemory (with the bytes) rather than be killed for want of memory.
std::shared_ptr<Array> make_array(DType dtype, std::vector<int64_t> shape);
// Operand i, which must be there. Throws kInvalidModel naming the operator.
const Array& operand(const Node& node, const Operands& operands, size_t i);
bool has_operand(const Operands& operands, size_t i);
// Elements of a shape operand (integers).
const std::vector<int64_t>& ints_of(const Node& node, const Operands& operands, size_t i);
// Attribute that may be absent.
std::vector<int64_t> ints_or(const Node& node, const std::string& key, std::vector<int64_t> otherwise);
// The integer that lies nearest to v, cut towards zero, in the range of an integer type; NaN: 0.
int64_t clamp_to(DType dtype, double v);
// kInvalidModel "OPERATOR: reason".
[[noreturn]] void bad_node(const Node& node, const std::string& reason);

// Which of the vectors of Array holds the elements of a dtype.
inline bool lives_in_f(DType dtype) { return is_float(dtype); }
inline bool lives_in_s(DType dtype) { return dtype == DType::kString; }

// Calls f with the same member vector of both arrays (floats, integers or strings by the dtype of `like`).
template <class F>
void on_storage(Array& out, const Array& like, F&& f) {
  if (lives_in_f(like.dtype))
    f(out.f, like.f);
  else if (lives_in_s(like.dtype))
    f(out.s, like.s);
  else
    f(out.i, like.i);
}

}  // namespace thrice::ir
