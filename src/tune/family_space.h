// The space of a workload's schedules on a device, as its family offers it.
#pragma once
#include "family/family.h"
#include "tune/space.h"

namespace thrice::tune {

// Holds references: all must outlive the space.
Space family_space(const ir::Workload& workload, const family::Family& family,
                   const std::vector<ir::Fact>& facts, const target::DeviceSpec& device);

}  // namespace thrice::tune
