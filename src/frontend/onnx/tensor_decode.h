// TensorProto -> tensor, from every storage field of the format.
#pragma once
#include <optional>
#include <string>

#include "frontend/onnx/external_data.h"
#include "frontend/onnx/model.h"

namespace thrice::onnx_format {
class TensorProto;
class SparseTensorProto;
}  // namespace thrice::onnx_format

namespace thrice::frontend::onnx {

// Our element type of an ONNX type number. Errors: kInvalidModel (no such number), kUnsupported (complex,
// 6-bit floats); `where` names the tensor or value.
DType dtype_of_onnx(int32_t number, const std::string& where);
int32_t onnx_dtype(DType dtype);  // the inverse

// Takes the bytes out of `proto` (its raw data is moved, not copied). Errors: kInvalidModel (sizes that do
// not fit, a negative extent, data in a field of another type), kUnsupported, and those of ExternalData.
ModelTensor decode_tensor(onnx_format::TensorProto& proto, ExternalData& external, const std::string& where);
// Made dense. Errors: also indices out of range or more than kMaxDenseBytes.
ModelTensor decode_sparse_tensor(onnx_format::SparseTensorProto& proto, ExternalData& external,
                                 const std::string& where);

}  // namespace thrice::frontend::onnx
