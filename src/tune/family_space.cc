#include "tune/family_space.h"

namespace thrice::tune {

Space family_space(const ir::Workload& workload, const family::Family& family,
                   const std::vector<ir::Fact>& facts, const target::DeviceSpec& device) {
  return {family.space(workload, facts, device), [&workload, &family, &device](const artifact::Schedule& s) {
            return !family.illegal(workload, s, device);
          }};
}

}  // namespace thrice::tune
