// One run of an Executable: the state that lives from inputs to outputs. Inner header of exec/.
#pragma once
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/bind.h"
#include "exec/executor.h"
#include "exec/facts.h"
#include "exec/lifetimes.h"

namespace thrice::exec {

// A bound segment with its recorded launches and the spans that they were last recorded with.
struct CachedSegment {
  BoundSegment bound;
  backend::BufferSpan parameters;
  std::unique_ptr<backend::Replay> replay;
  std::vector<backend::RecordedLaunch> launches;
  // By launch and argument: whose the buffers are that differ from run to run; the record does not own them.
  std::vector<std::vector<std::weak_ptr<backend::Buffer>>> owners;
  std::vector<backend::BufferPtr> kept;  // as BoundSegment::kept
  uint64_t last_used = 0;                // State::bindings_used then
};

struct Executor::State {
  std::shared_ptr<const Executable> code;
  std::shared_ptr<backend::Stream> stream;
  std::shared_ptr<BufferPool> pool;
  backend::BufferPtr arena;
  Lifetimes lifetimes;
  std::vector<std::map<std::string, std::unique_ptr<CachedSegment>>> cache;
  uint64_t bindings_used = 0;  // how often one was asked for
  std::map<std::pair<int, int>, std::unique_ptr<Executor>> bodies;
  int64_t arena_lower_bound = 0;
  MemoryUse own_memory() const;  // without the pool, which executors of bodies share
};

class Run {
 public:
  Run(Executor::State& state, const RunOptions& options);
  std::vector<Operand> execute(const std::vector<Operand>& inputs);

 private:
  Operand& operand(ir::ValueId v) { return values_[static_cast<size_t>(v)]; }
  const backend::BufferSpan& on_device(ir::ValueId v);  // uploads where needed
  const ir::Tensor& on_host(ir::ValueId v);             // downloads (and waits) where needed
  void set_result(ir::ValueId v, Operand value);

  CachedSegment& bound(size_t segment);
  void make_room(size_t arena_bytes);
  std::string key(size_t segment);
  void launch_segment(size_t segment);
  void launch_observed(size_t segment, CachedSegment& cached);
  void pack(const BoundLaunch& launch, backend::RecordedLaunch recorded);
  void let_go(size_t segment);  // of what nothing reads after it
  void host_step(const StepCode& code);
  void control_step(const StepCode& code);
  void run_if(ir::NodeId node);
  void run_loop(ir::NodeId node);
  void run_scan(ir::NodeId node);
  std::vector<Operand> run_body(ir::NodeId node, int body, const std::vector<Operand>& inputs);
  Operand stack(const std::vector<Operand>& parts, const ir::Type& type);
  Operand captured(ir::ValueId v);
  Operand slice_row(const Operand& whole, int64_t row);
  void observe(size_t segment, size_t step, double device_us);

  Executor::State& state_;
  const Executable& code_;
  const ir::Graph& graph_;
  const RunOptions& options_;
  RunFacts facts_;
  std::vector<Operand> values_;
};

}  // namespace thrice::exec
