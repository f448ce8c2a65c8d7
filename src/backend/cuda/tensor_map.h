// A tensor map as the driver encodes it: an argument of a kernel, tied to one address.
#pragma once
#include "artifact/tensor_map.h"
#include "backend/cuda/context.h"

namespace thrice::backend::cuda {

struct EncodedMap {
  alignas(64) unsigned char bytes[128];

  // For the buffer at `address`. Throws kUnsupported where the driver has no tensor maps, kLaunchFailed where
  // it refuses this one (an address that is no multiple of 16, say); `kernel` is for the message.
  void encode(const Context& c, const artifact::TensorMap& map, CUdeviceptr address,
              const std::string& kernel);
};

}  // namespace thrice::backend::cuda
