// What `--target` names: a device, or architectures of cards that need not be there.
#pragma once
#include <string>
#include <vector>

#include "backend/backend.h"

namespace thrice::flow {

struct OpenedTarget {
  backend::DevicePtr device;
  bool runs = true;  // false: kernels are built for `device`, nothing can be run or checked on it
  std::vector<std::string> also;  // further architectures that the release gets binaries for
};

// "" (the best device found), "cuda:0", "opencl:0", "null:0", "cuda:sm_80,sm_90a". With architectures, a card
// of this machine that is one of them is tuned on; where there is none the first of them stands for a card.
// Errors: those of backend::open_device and backend::open_cross_device.
OpenedTarget open_target(const std::string& text);

}  // namespace thrice::flow
