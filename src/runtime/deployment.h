// A release in service inside one process: any thread runs it, and another release takes its place while
// they do.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "exec/executor.h"
#include "runtime/programs.h"

namespace thrice::runtime {

using ReleasePtr = std::shared_ptr<const release::Release>;

// Threads: every member is safe from any thread. Runs at one time work on executors of their own (arena and
// buffers each); programs and weights are shared, with other deployments of the same release on this Device
// too (shared_code.h). A run finishes on the version that it began with.
class Deployment {
 public:
  // `build`: see release_programs. Errors: those of make_executable and of release_programs.
  Deployment(backend::DevicePtr device, ReleasePtr release, Builder build);
  ~Deployment();

  // Inputs in the order of the manifest, on the host or on the device (written before the call); results on
  // the host, in memory of their own. Blocks until they are there. Errors: as Executor::run.
  std::vector<ir::Tensor> run(const std::vector<exec::Operand>& inputs);

  // Enqueues on the caller's stream and returns; the host waits only where the plan has host steps or where
  // an input lies on the host. Results lie on the device, in buffers of their own: not the inputs', not the
  // weights', no two the same. They are written in the stream's order, and a buffer that is let go of is used
  // again in that order: whoever reads it on another stream waits for that read before letting go.
  // The stream must outlive the deployment, or be forgotten first. Runs on one stream take turns.
  std::vector<exec::Operand> run_on(void* stream, const std::vector<exec::Operand>& inputs);
  void forget_stream(void* stream);  // waits for the work on it and frees what was kept for it
  ir::Tensor read(void* stream, const exec::Operand& result);  // to the host, in the stream's order; waits
  void synchronize(void* stream);  // of a stream that run_on has seen; else nothing to wait for

  // Loads first, changes places then: runs that begin later use `release`. Its inputs and outputs must have
  // the names, dtypes and shapes of the present ones (kInvalidArgument says which differs); on any error the
  // present release stays.
  void swap(ReleasePtr release);

  ReleasePtr release() const;  // the one that a run would begin with now
  backend::DevicePtr device() const { return device_; }

 private:
  struct Version;
  std::shared_ptr<Version> current() const;

  const backend::DevicePtr device_;
  const Builder build_;
  mutable std::mutex mutex_;  // guards current_
  std::shared_ptr<Version> current_;
};

}  // namespace thrice::runtime
