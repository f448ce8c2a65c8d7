// Runs an Executable: binds each segment to the shapes at hand (once per new shape), then only launches.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/buffer_pool.h"
#include "exec/executable.h"

namespace thrice::exec {

// A value on its way through a run: on the host, on the device, or both.
struct Operand {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  backend::BufferSpan device;  // device.buffer null: not on the device
  std::optional<ir::Tensor> host;

  static Operand from_host(ir::Tensor tensor);
  size_t bytes() const;
};

// One executed step, told to an observer after it has finished on the device.
struct StepEvent {
  size_t segment = 0, step = 0;
  const StepCode* code = nullptr;
  double device_us = 0;                         // launches of this step; 0 for host and alias steps
  std::function<ir::Tensor(ir::ValueId)> read;  // downloads a value that is alive after the step
};
struct RunOptions {
  std::function<void(const StepEvent&)>
      observe;  // makes the run synchronous and step by step; for --trace, --bisect, tests
};

// Device memory of one executor on one Executable, in bytes.
struct MemoryUse {
  int64_t weights = 0;            // of all constants that device steps read, each once, as they are
  int64_t held = 0;               // of constants on the device while runs go on: as they are and packed
  int64_t arena = 0;              // temporaries of segments
  int64_t arena_lower_bound = 0;  // largest over bindings of max_t sum(live)
  int64_t pool = 0;               // inputs, outputs and what is carried between segments, at their peak

  // What runs need beside the weights: packed copies count with what they take above the weights that they
  // stand for.
  int64_t peak() const { return pool + arena + std::max<int64_t>(0, held - weights); }
  int64_t total() const { return pool + arena + held; }
};

// One in-order stream, one arena, cached bindings. One thread at a time; many executors may share an
// Executable.
class Executor {
 public:
  explicit Executor(std::shared_ptr<const Executable> code, void* native_stream = nullptr);
  ~Executor();

  // Inputs in the order of graph.inputs. Results may still be being written by the stream: synchronize(), or
  // use them on the same stream. A result may share a buffer with an input or a constant (identity graphs);
  // callers that hand it on copy it. Errors: kInvalidArgument (dtype, rank or extent of an input; names it),
  // kOutOfMemory, kLaunchFailed. After an error the executor is usable again.
  std::vector<Operand> run(const std::vector<Operand>& inputs, const RunOptions& options = {});
  std::vector<ir::Tensor> run_host(const std::vector<ir::Tensor>& inputs, const RunOptions& options = {});
  ir::Tensor to_host(const Operand& operand);  // downloads where needed; waits
  // The operand's bytes in a buffer of the executor's pool that nothing else refers to, in stream order.
  backend::BufferSpan copy_to_device(const Operand& operand);
  void synchronize();

  backend::Stream& stream();
  const Executable& code() const;
  MemoryUse memory() const;  // after the runs so far
  int64_t peak_bytes() const { return memory().peak(); }

 private:
  friend class Run;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thrice::exec
