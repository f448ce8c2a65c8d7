// State of NVIDIA cards through NVML, opened at run time with prototypes of our own. Works without root and
// changes nothing.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware/snapshot.h"

namespace thrice::hardware {

class Nvml {
 public:
  // nullptr where there is no driver; `reason` then says why.
  static std::unique_ptr<Nvml> open(std::string* reason, const std::string& library = "");
  virtual ~Nvml() = default;
  // Every card that CUDA programs of this environment see. Never throws: what cannot be read is unknown.
  virtual std::vector<DeviceState> read() = 0;
};

// Places in `uuids` (in the order of the bus) of the cards that a CUDA program sees, as its "cuda:0",
// "cuda:1",
// ..., under CUDA_VISIBLE_DEVICES = `visible` (numbers, or beginnings of UUIDs; the first that fits no card
// ends the list). nullopt: all, in order.
std::vector<size_t> visible_cards(const std::vector<std::string>& uuids,
                                  const std::optional<std::string>& visible);

// Words for the bits that a driver gives as reasons of lower clocks. Idle and a user's own clock settings are
// no throttling.
std::vector<std::string> throttle_words(uint64_t bits);

}  // namespace thrice::hardware
