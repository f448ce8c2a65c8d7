// DLPack's exchange structs (dmlc.github.io/dlpack, version 0.x, the form that every consumer still takes),
// written from its specification: Debian's header is older than some of the type codes.
#pragma once
#include <cstdint>

enum : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLOpenCL = 4 };                             // device types
enum : uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };  // dtype codes

struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // elements; nullptr = dense
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};
