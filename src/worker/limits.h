// How long a worker may be silent, and what it may hold.
#pragma once
#include <cstdint>

namespace thrice::worker {

struct Limits {
  double start_s = 60;       // the driver's start; CUDA on a machine with eight cards takes seconds
  double build_s = 30;       // one compilation; on OpenCL the first launch too, since drivers compile there
  double run_s = 5;          // launches on the device: the least that is allowed ...
  double slower = 20;        // ... and how many times the best known time an execution may take
  double first_run_s = 60;   // where no best time is known
  double host_s = 600;       // float64 answers of large regions
  int64_t memory_bytes = 0;  // addresses of a worker on a CPU device (RLIMIT_AS); 0 = no limit
};

}  // namespace thrice::worker
