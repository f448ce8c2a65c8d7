// What a worker process does: answers its parent until the socket ends.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace thrice::worker {

struct ServeOptions {
  std::string device;        // "opencl:0", "cuda:0": a runner
  std::string architecture;  // "sm_90a": a builder, which needs no device
  std::string kernels;       // folder of the kernel cache; "" = none
  bool fences = false;       // check with buffers that end at unmapped memory
  std::string launches;      // file of worker/launches_file.h: makes them once and ends, without a parent
  int64_t groups = 0;        // of such a launch, at most; 0 = all
};
// Speaks over descriptor kWorkerDescriptor. Returns the exit code. Throws kInvalidArgument where that is no
// socket: nobody starts a worker by hand.
int serve(const ServeOptions& options);
// For programs other than thrice that make trials in workers (/proc/self/exe is theirs): first thing in
// main(). nullopt: the first word is not `worker`, go on.
std::optional<int> serve_if_worker(int argc, char** argv);

}  // namespace thrice::worker
