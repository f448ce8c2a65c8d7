// Throughput: how long an execution takes when several run at once, on streams of their own.
#pragma once
#include "artifact/kernel.h"
#include "backend/backend.h"
#include "ir/region.h"
#include "measure/check.h"

namespace thrice::measure {

constexpr int kConcurrentStreams = 4;

// Microseconds between the ends of two executions while kConcurrentStreams streams (OpenCL: queues) run the
// same program, each on buffers of its own: the time of a batch over its executions, by wall clock; median of
// three batches. `alone_us`: of one execution by itself, for the length of batches. Short launches are
// replayed several at a call, so that the host does not count. 0 = not measured: too little memory for that
// many buffers, or longer than 20 ms alone, when a device is full. Errors: kLaunchFailed. Waits.
double time_concurrent(backend::Device& device, const backend::ProgramPtr& program,
                       const ir::Workload& workload, const artifact::LaunchPlan& launches, Oracle& oracle,
                       uint64_t seed, double alone_us);

}  // namespace thrice::measure
