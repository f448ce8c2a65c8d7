// State of the host from /proc and /sys.
#pragma once
#include <string>

#include "hardware/snapshot.h"

namespace thrice::hardware {

class HostReader {
 public:
  explicit HostReader(std::string root) : root_(std::move(root)) {}
  HostState read();

 private:
  std::string root_;
  double busy_ticks_ = -1, all_ticks_ = -1;  // of the sample before
};

}  // namespace thrice::hardware
