// Which values outlive the segment that makes or reads them.
#pragma once
#include <cstdint>
#include <vector>

#include "exec/executable.h"

namespace thrice::exec {

struct Lifetimes {
  // By segment, then value id: read after the segment, or returned. What a host or control step makes is
  // always carried by other means.
  std::vector<std::vector<uint8_t>> escapes;
  // By segment: values that it reads or makes and that nothing later reads or returns.
  std::vector<std::vector<ir::ValueId>> last_read;
};
Lifetimes find_lifetimes(const Executable& code);

}  // namespace thrice::exec
