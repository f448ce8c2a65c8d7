// One candidate's outputs against the oracle's answer. Inner header of measure/.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "measure/check.h"

namespace thrice::measure {

class Arguments;

struct Judgement {
  std::string reason;  // empty = right
  double error = 0,
         limit = 0;  // of the output that is worst relative to its limit; 0 and 0 where none was compared
  std::vector<bool>
      compared;  // by output: numbers were compared (or it has no element). Where not, classes agree
};
// What one round of launches left, with nothing said of its values yet.
struct Left {
  std::string damage;  // "" = guard zones and inputs are as they were
  std::vector<ir::Tensor> outputs;
};
// Downloads it. Waits for the stream.
Left left_by(Arguments& arguments, const ir::Workload& workload, const std::vector<ir::Tensor>& inputs);
// Judges it. `poison` = what outputs held before. The answer is computed here where it is not known.
Judgement judge(const Left& left, Oracle& oracle, ir::InputKind kind, uint64_t seed, std::byte poison,
                bool with_bounds);
// Both. Downloads what the launches left: guard zones, inputs, outputs. `poison` = what outputs held before.
// Waits for the stream. The answer is computed here, after the candidate's last launch.
Judgement judge(Arguments& arguments, const ir::Workload& workload, Oracle& oracle, ir::InputKind kind,
                uint64_t seed, std::byte poison, bool with_bounds);

}  // namespace thrice::measure
