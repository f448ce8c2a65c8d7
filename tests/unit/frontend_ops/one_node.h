// A model of one node in memory: import, evaluate in float64, read the results.
#pragma once
#include <onnx_subset.pb.h>

#include <map>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "ir/evaluate.h"

namespace thrice::test {

struct OneNode {
  std::string op_type;
  int64_t opset = 17;
  std::string domain;
  std::map<std::string, ir::Attribute> attributes;
  std::map<std::string, std::vector<std::string>> string_lists;
  // Operands in order; an absent one has no elements in `absent`.
  std::vector<ir::Tensor> operands;
  std::vector<size_t> constants;                       // operands that are initializers
  std::vector<size_t> absent;                          // operands that are left out
  std::map<size_t, std::vector<std::string>> symbols;  // operand -> names of its extents ("" = the number)
  size_t results = 1;

  ir::Graph import() const;
  std::vector<ir::Tensor> run() const;
  std::vector<double> values(size_t result = 0) const;  // run()'s result as numbers
};

ir::Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values);  // f32
ir::Tensor f64s(std::vector<int64_t> shape, const std::vector<double>& values);
ir::Tensor random_f64(std::vector<int64_t> shape, uint64_t seed);  // uniform in [-1, 1)

}  // namespace thrice::test
