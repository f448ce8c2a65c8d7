// What all objects of one CUDA device share: its primary context, which other libraries of the process use
// too.
#pragma once
#include <memory>

#include "backend/cuda/api.h"
#include "target/device_spec.h"

namespace thrice::backend::cuda {

struct Context {
  const Api& api;
  CUdevice device = 0;
  CUcontext handle = nullptr;
  CUdeviceptr empty = 0;  // stands in for arguments of zero bytes
  int64_t shared_optin_bytes = 0;
  target::DeviceSpec spec;

  explicit Context(const Api& functions) : api(functions) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (!handle) return;
    if (empty && api.CtxPushCurrent_v2(handle) == kCuSuccess) {
      api.MemFree_v2(empty);
      CUcontext popped = nullptr;
      api.CtxPopCurrent_v2(&popped);
    }
    api.DevicePrimaryCtxRelease_v2(device);
  }
};
using ContextPtr = std::shared_ptr<const Context>;

// Makes the context current for one scope and leaves the thread's own as it was.
class Use {
 public:
  explicit Use(const Context& context) : api_(context.api) {
    api_.check(api_.CtxPushCurrent_v2(context.handle), context.spec.id + ": making its context current");
  }
  ~Use() {
    CUcontext popped = nullptr;
    api_.CtxPopCurrent_v2(&popped);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  const Api& api_;
};

}  // namespace thrice::backend::cuda
