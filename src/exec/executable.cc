#include "exec/executable.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <utility>

#include "ir/check.h"
#include "ir/region_name.h"

namespace thrice::exec {

using artifact::PlanStep;
using artifact::StepKind;
using ir::Graph;
using ir::ValueId;

namespace {

// A plan comes from a file too: everything that indexes is checked before it is used.
void check_step(const Graph& graph, const PlanStep& step) {
  if (step.nodes.empty()) throw Error(Code::kCorrupt, "plan: a step has no nodes");
  if (step.kind != StepKind::kRegion && step.nodes.size() != 1)
    throw Error(Code::kCorrupt, "plan: a host, alias or control step must have one node");
  for (int32_t n : step.nodes)
    if (n < 0 || static_cast<size_t>(n) >= graph.nodes.size())
      throw Error(Code::kCorrupt, fmt::format("plan: node {} does not exist", n));
}

// Every operand that a step makes is made before it is read. Values that no step makes are shape arithmetic,
// which binding computes.
void check_order(const Graph& graph, const artifact::Plan& plan) {
  std::vector<uint8_t> comes(graph.nodes.size(), 0);  // 1: in some step, 2: already made
  for (const artifact::Segment& segment : plan.segments)
    for (const PlanStep& step : segment.steps) {
      check_step(graph, step);
      for (int32_t n : step.nodes)
        if (std::exchange(comes[static_cast<size_t>(n)], 1))
          throw Error(Code::kCorrupt, fmt::format("plan: node {} runs twice", n));
    }
  for (const artifact::Segment& segment : plan.segments)
    for (const PlanStep& step : segment.steps)
      for (int32_t n : step.nodes) {
        for (ValueId v : graph.nodes[static_cast<size_t>(n)].inputs) {
          const int32_t producer = v == ir::kNoValue ? -1 : graph.value(v).producer;
          if (producer >= 0 && comes[static_cast<size_t>(producer)] == 1)
            throw Error(Code::kCorrupt,
                        fmt::format("plan: node {} reads what node {} makes later", n, producer));
        }
        comes[static_cast<size_t>(n)] = 2;
      }
}

int64_t aligned(size_t bytes) {
  return static_cast<int64_t>((bytes + backend::kAlignment - 1) / backend::kAlignment * backend::kAlignment);
}

bool reads_each_run(const KernelCode& kernel, size_t buffer) {
  return kernel.uses.empty() || std::any_of(kernel.uses.begin(), kernel.uses.end(), [&](const auto& use) {
           return !use.once && use.touches[buffer];
         });
}

// Decides which constants must be on the device while runs go on (the result), and which only while they are
// packed.
std::vector<size_t> place_constants(Executable& code) {
  const Graph& graph = *code.graph;
  std::vector<uint8_t> wanted(graph.values.size(), 0), packed(graph.values.size(), 0);
  std::vector<size_t> resident;
  for (const SegmentCode& segment : code.segments)
    for (const StepCode& step : segment.steps) {
      if (step.step->kind == StepKind::kRegion) {
        size_t buffer = 0;
        for (size_t i = 0; i < step.workload.inputs.size(); ++i) {
          if (ir::is_shape_input(step.workload, i)) continue;
          const bool is_needed =
              std::any_of(step.kernels.begin(), step.kernels.end(),
                          [&](const KernelCode& kernel) { return reads_each_run(kernel, buffer); });
          (is_needed ? wanted : packed)[static_cast<size_t>(step.workload.inputs[i])] = 1;
          ++buffer;
        }
      } else if (step.step->kind != StepKind::kHost) {
        for (ValueId v : graph.nodes[static_cast<size_t>(step.step->nodes[0])].inputs)
          if (v != ir::kNoValue) wanted[static_cast<size_t>(v)] = 1;
      }
    }
  for (ValueId v : graph.outputs) wanted[static_cast<size_t>(v)] = 1;

  code.constants.resize(graph.values.size());
  code.packed_only.assign(graph.values.size(), 0);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const auto& constant = graph.values[v].constant;
    if (!(wanted[v] || packed[v]) || !constant || constant->dtype() == DType::kString) continue;
    const int64_t bytes = aligned(constant->bytes());
    code.constant_bytes += bytes;
    code.packed_only[v] = !wanted[v];
    if (!wanted[v]) continue;
    code.constants[v] = {nullptr, static_cast<size_t>(code.resident_bytes), constant->bytes()};
    code.resident_bytes += bytes;
    resident.push_back(v);
  }
  return resident;
}

// One allocation for all weights: they live and die together.
void upload_constants(Executable& code, const std::vector<size_t>& resident) {
  if (resident.empty()) return;
  const backend::BufferPtr buffer =
      code.device->allocate(std::max<size_t>(static_cast<size_t>(code.resident_bytes), backend::kAlignment));
  const auto stream = code.device->make_stream();
  for (const size_t v : resident) {
    const ir::Tensor& tensor = *code.graph->values[v].constant;
    code.constants[v].buffer = buffer;
    if (tensor.bytes() > 0) stream->copy_to_device(code.constants[v], {tensor.data(), tensor.bytes()});
  }
  stream->synchronize();
}

// `device` null: nothing is loaded.
std::shared_ptr<Executable> make(const backend::DevicePtr& device, std::shared_ptr<const Graph> graph,
                                 std::shared_ptr<const artifact::Plan> plan, const ProgramSource& programs) {
  auto code = std::make_shared<Executable>();
  code->device = device;
  code->graph = graph;
  code->plan = plan;
  if (plan->graph_hash != ir::structural_hash(*graph, false))
    throw Error(Code::kCorrupt, "plan: it was made for another graph");
  check_order(*graph, *plan);
  for (const artifact::Segment& segment : plan->segments) {
    SegmentCode& out = code->segments.emplace_back();
    for (const PlanStep& step : segment.steps) {
      StepCode& s = out.steps.emplace_back();
      s.step = &step;
      s.name = ir::region_name(*graph, step.nodes);
      if (step.kind != StepKind::kRegion) continue;
      s.workload = ir::extract(*graph, ir::make_region(*graph, step.nodes));
      if (s.workload.hash != step.workload)
        throw Error(Code::kCorrupt,
                    fmt::format("plan: region '{}' is not the workload it was planned as", s.name));
      const auto add = [&](const artifact::Schedule& schedule) {
        KernelCode& kernel = s.kernels.emplace_back();
        kernel.schedule = &schedule;
        kernel.family = family::find_family(schedule.family);
        if (!kernel.family)
          throw Error(Code::kCorrupt, fmt::format("plan: unknown kernel family '{}'", schedule.family));
        if (device) kernel.program = programs(s.workload, *kernel.family, schedule);
        kernel.uses = kernel.family->uses(s.workload, schedule);
      };
      for (const artifact::Bucket& bucket : step.buckets) add(bucket.schedule);
      add(step.schedule);
    }
  }
  const std::vector<size_t> resident = place_constants(*code);
  if (device) upload_constants(*code, resident);
  for (const artifact::Plan::Body& body : plan->bodies) {
    if (body.node < 0 || static_cast<size_t>(body.node) >= graph->nodes.size() || body.body < 0 ||
        static_cast<size_t>(body.body) >= graph->nodes[static_cast<size_t>(body.node)].bodies.size() ||
        body.plan.size() != 1)
      throw Error(Code::kCorrupt, "plan: a control body does not exist");
    code->bodies[{body.node, body.body}] =
        make(device, graph->nodes[static_cast<size_t>(body.node)].bodies[static_cast<size_t>(body.body)],
             std::make_shared<artifact::Plan>(body.plan[0]), programs);
  }
  return code;
}

}  // namespace

std::shared_ptr<const Executable> resolve_plan(std::shared_ptr<const Graph> graph,
                                               std::shared_ptr<const artifact::Plan> plan) {
  return make(nullptr, std::move(graph), std::move(plan), {});
}

std::shared_ptr<const Executable> make_executable(backend::DevicePtr device,
                                                  std::shared_ptr<const Graph> graph,
                                                  std::shared_ptr<const artifact::Plan> plan,
                                                  const ProgramSource& programs) {
  return make(device, std::move(graph), std::move(plan), programs);
}

}  // namespace thrice::exec
