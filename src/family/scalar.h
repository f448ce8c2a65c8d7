// Scalar operators, types and literals as kernel text.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"

namespace thrice::family {

// Type of a variable that holds an element during computation: f16 and bf16 compute in float, bool in int.
std::string compute_type(DType dtype);
std::string storage_type(DType dtype);    // element type of a buffer: f16 and bf16 as ushort
std::string compute_suffix(DType dtype);  // suffix of prelude functions at the compute type: "f32"
bool is_emittable(DType dtype);

// Literal of the compute type: exact (hex floats), NaN and Inf spelled by prelude names.
std::string float_literal(DType dtype, double value);
std::string int_literal(DType dtype, int64_t value);
std::string literal(const ir::Tensor& tensor, int64_t element);

// One element-wise operator on operands that are identifiers or literals of their compute types; the result
// is an expression of the result's compute type. Throws kUnsupported naming operator and dtype.
std::string scalar_expression(const ir::Node& node, const std::vector<DType>& types,
                              const std::vector<std::string>& operands, DType result);
std::string cast_expression(const std::string& x, DType from, DType to);

// Combination and neutral element of a reduction kind at a dtype ("sum": a + b, 0).
std::string combine(const std::string& kind, DType dtype, const std::string& a, const std::string& b);
std::string neutral(const std::string& kind, DType dtype);

}  // namespace thrice::family
