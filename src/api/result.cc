// The functions of thrice.h on results, and their export as DLPack tensors.
#include <fmt/format.h>

#include <algorithm>

#include "api/dlpack.h"
#include "api/guard.h"
#include "api/tensors.h"

using namespace thrice;

namespace {

const exec::Operand& output(const thrice_result* result, size_t index) {
  if (!result) throw Error(Code::kInvalidArgument, "result is NULL");
  if (index >= result->data->outputs.size())
    throw Error(Code::kInvalidArgument, fmt::format("output {} of {}", index, result->data->outputs.size()));
  return result->data->outputs[index];
}

void* address(const exec::Operand& o) {
  // The result is the sole owner of a host tensor: writing to it changes nothing else.
  return o.host ? const_cast<std::byte*>(o.host->data()) : o.device.buffer->native();
}

DLDataType dl_type(DType dtype) {
  uint8_t code = kDLFloat;
  if (dtype == DType::kBF16)
    code = kDLBfloat;
  else if (dtype == DType::kBool)
    code = kDLBool;
  else if (is_unsigned_integer(dtype))
    code = kDLUInt;
  else if (is_integer(dtype))
    code = kDLInt;
  return {code, static_cast<uint8_t>(8 * dtype_bytes(dtype)), 1};
}

DLDevice dl_device(const exec::Operand& o, const target::DeviceSpec& spec) {
  if (o.host) return {kDLCPU, 0};
  const size_t colon = spec.id.find(':');
  const int index = colon == std::string::npos ? 0 : std::atoi(spec.id.c_str() + colon + 1);
  return {spec.api == target::Api::kCuda ? kDLCUDA : kDLOpenCL, index};
}

// What a DLPack consumer holds: its share of the result, and the shape that the tensor points to.
struct Export {
  DLManagedTensor tensor;
  std::shared_ptr<const api::ResultData> data;
  std::vector<int64_t> shape;
};

}  // namespace

size_t thrice_result_size(const thrice_result* result) { return result ? result->data->outputs.size() : 0; }

thrice_status thrice_result_tensor(const thrice_result* result, size_t index, thrice_tensor* tensor) {
  return api::guarded([&] {
    const exec::Operand& o = output(result, index);
    if (!tensor) throw Error(Code::kInvalidArgument, "tensor is NULL");
    *tensor = {};
    tensor->data = address(o);
    tensor->shape = o.shape.data();
    tensor->rank = static_cast<int32_t>(o.shape.size());
    tensor->dtype = static_cast<thrice_dtype>(o.dtype);
    tensor->memory = o.host ? THRICE_HOST : THRICE_DEVICE;
  });
}

thrice_status thrice_result_dlpack(const thrice_result* result, size_t index, DLManagedTensor** tensor) {
  return api::guarded([&] {
    const exec::Operand& o = output(result, index);
    if (!tensor) throw Error(Code::kInvalidArgument, "tensor is NULL");
    auto made = std::make_unique<Export>();
    made->data = result->data;
    made->shape = o.shape;
    made->tensor.dl_tensor = {address(o),
                              dl_device(o, result->data->device->spec()),
                              static_cast<int32_t>(o.shape.size()),
                              dl_type(o.dtype),
                              made->shape.data(),
                              nullptr,
                              0};
    made->tensor.manager_ctx = made.get();
    made->tensor.deleter = [](DLManagedTensor* self) { delete static_cast<Export*>(self->manager_ctx); };
    *tensor = &made.release()->tensor;
  });
}

void thrice_result_free(thrice_result* result) { delete result; }
