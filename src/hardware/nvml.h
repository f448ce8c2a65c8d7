// State of NVIDIA cards through NVML, opened at run time with prototypes of our own. Works without root and
// changes nothing.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "hardware/snapshot.h"

namespace thrice::hardware {

class Nvml {
 public:
  // nullptr where there is no driver; `reason` then says why.
  static std::unique_ptr<Nvml> open(std::string* reason);
  virtual ~Nvml() = default;
  virtual std::vector<DeviceState> read() = 0;
};

// Words for the bits that a driver gives as reasons of lower clocks. Idle and a user's own clock settings are
// no throttling.
std::vector<std::string> throttle_words(uint64_t bits);

}  // namespace thrice::hardware
