// What all objects of one OpenCL device share; kept alive by each of them.
#pragma once
#include <memory>

#include "backend/opencl/api.h"
#include "target/device_spec.h"

namespace thrice::backend::opencl {

struct Context {
  const Api& api;
  cl_device_id device = nullptr;
  cl_context handle = nullptr;
  cl_mem empty = nullptr;  // stands in for arguments of zero bytes; never read or written by a right kernel
  bool correct_divide = false;  // the device rounds float32 division and sqrt correctly when asked to
  target::DeviceSpec spec;

  explicit Context(const Api& functions) : api(functions) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (empty) api.ReleaseMemObject(empty);
    if (handle) api.ReleaseContext(handle);
  }
};
using ContextPtr = std::shared_ptr<const Context>;

}  // namespace thrice::backend::opencl
