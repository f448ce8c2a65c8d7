// Tensors across the C interface: checked views of the caller's memory, descriptions, results.
#pragma once
#include <thrice/thrice.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "exec/executor.h"
#include "ir/graph.h"

namespace thrice::api {

// The caller's tensors without a copy. Errors: kInvalidArgument (no data, negative extent, unknown dtype or
// memory) naming the input.
std::vector<exec::Operand> operands_of(backend::Device& device, const ir::Graph& graph,
                                       const thrice_tensor* inputs, size_t num_inputs);

// Inputs or outputs of a model, in memory that thrice_tensor_info points into. Not moved once made.
class Description {
 public:
  Description(const ir::Graph& graph, const std::vector<ir::ValueId>& values,
              const std::vector<std::string>& names);
  Description(const Description&) = delete;
  size_t size() const { return tensors_.size(); }
  thrice_tensor_info info(size_t index) const;  // throws kInvalidArgument: no such index

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<std::string> expressions;
    std::vector<const char*> pointers;  // into expressions
  };
  std::vector<Tensor> tensors_;
};

// The outputs of one run, on the host or in device buffers. Shared by the result and what it was exported as.
struct ResultData {
  backend::DevicePtr device;  // outlives the buffers
  std::vector<exec::Operand> outputs;
};

}  // namespace thrice::api

struct thrice_result {
  std::shared_ptr<const thrice::api::ResultData> data;
};
