// A plan ready to run on one device: programs loaded, constants uploaded. Immutable; shared by any number of
// executors.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artifact/plan.h"
#include "backend/backend.h"
#include "exec/kept_buffers.h"
#include "family/family.h"
#include "ir/region.h"

namespace thrice::exec {

// One schedule of a region with its kernels.
struct KernelCode {
  const artifact::Schedule* schedule = nullptr;
  const family::Family* family = nullptr;
  std::vector<family::KernelUse> uses;  // of the family; empty: every kernel needs every buffer
  backend::ProgramPtr program;
};
// One step of a segment with what it needs at run time.
struct StepCode {
  const artifact::PlanStep* step = nullptr;
  std::string name;                 // for people: "Conv + HardSwish"
  ir::Workload workload;            // kRegion: inputs and outputs are value ids of the model graph
  std::vector<KernelCode> kernels;  // of each bucket, and last of PlanStep::schedule
};
struct SegmentCode {
  std::vector<StepCode> steps;
};

struct Executable {
  backend::DevicePtr device;
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<const artifact::Plan> plan;
  std::vector<SegmentCode> segments;
  // By value id; empty span where the value is no constant that a device step reads, or where only launches
  // that run once read it (`packed_only`): such a weight lies on the device while it is packed, and the
  // packed copy takes its place.
  std::vector<backend::BufferSpan> constants;
  std::vector<uint8_t> packed_only;
  std::map<std::pair<int, int>, std::shared_ptr<const Executable>> bodies;  // (node, body) of control steps
  int64_t constant_bytes = 0;  // of all constants that device steps read, `packed_only` ones too
  int64_t resident_bytes = 0;  // of those that `constants` holds
  std::shared_ptr<KeptBuffers> kept = std::make_shared<KeptBuffers>();  // made of constants while running
};

// Where a region's loaded program comes from: the jit (build or cache) or a release's binaries.
using ProgramSource =
    std::function<backend::ProgramPtr(const ir::Workload&, const family::Family&, const artifact::Schedule&)>;

// What make_executable makes, without device, programs and bytes of constants: enough to bind and to predict
// memory. Errors: kCorrupt as there.
std::shared_ptr<const Executable> resolve_plan(std::shared_ptr<const ir::Graph> graph,
                                               std::shared_ptr<const artifact::Plan> plan);

// Errors: kCorrupt where the plan does not fit the graph (another graph's hash, nodes out of range, a value
// read before it is made), kOutOfMemory, and what `programs` throws.
std::shared_ptr<const Executable> make_executable(backend::DevicePtr device,
                                                  std::shared_ptr<const ir::Graph> graph,
                                                  std::shared_ptr<const artifact::Plan> plan,
                                                  const ProgramSource& programs);

}  // namespace thrice::exec
