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

void upload_constants(Executable& code) {
  const Graph& graph = *code.graph;
  std::vector<uint8_t> wanted(graph.values.size(), 0);
  for (const SegmentCode& segment : code.segments)
    for (const StepCode& step : segment.steps) {
      if (step.step->kind == StepKind::kRegion) {
        for (size_t i = 0; i < step.workload.inputs.size(); ++i)
          if (!ir::is_shape_input(step.workload, i)) wanted[static_cast<size_t>(step.workload.inputs[i])] = 1;
      } else if (step.step->kind != StepKind::kHost) {
        for (ValueId v : graph.nodes[static_cast<size_t>(step.step->nodes[0])].inputs)
          if (v != ir::kNoValue) wanted[static_cast<size_t>(v)] = 1;
      }
    }
  for (ValueId v : graph.outputs) wanted[static_cast<size_t>(v)] = 1;

  code.constants.resize(graph.values.size());
  std::vector<std::pair<size_t, size_t>> places;  // value, offset
  size_t total = 0;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const auto& constant = graph.values[v].constant;
    if (!wanted[v] || !constant || constant->dtype() == DType::kString) continue;
    places.emplace_back(v, total);
    total += (constant->bytes() + backend::kAlignment - 1) / backend::kAlignment * backend::kAlignment;
  }
  if (places.empty()) return;
  // One allocation for all weights: they live and die together.
  const backend::BufferPtr buffer = code.device->allocate(std::max<size_t>(total, backend::kAlignment));
  const auto stream = code.device->make_stream();
  for (const auto& [v, offset] : places) {
    const ir::Tensor& tensor = *graph.values[v].constant;
    code.constants[v] = {buffer, offset, tensor.bytes()};
    if (tensor.bytes() > 0) stream->copy_to_device(code.constants[v], {tensor.data(), tensor.bytes()});
  }
  stream->synchronize();
  code.constant_bytes = static_cast<int64_t>(total);
}

}  // namespace

std::shared_ptr<const Executable> make_executable(backend::DevicePtr device,
                                                  std::shared_ptr<const Graph> graph,
                                                  std::shared_ptr<const artifact::Plan> plan,
                                                  const ProgramSource& programs) {
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
      s.family = family::find_family(step.schedule.family);
      if (!s.family)
        throw Error(Code::kCorrupt, fmt::format("plan: unknown kernel family '{}'", step.schedule.family));
      s.program = programs(s.workload, *s.family, step.schedule);
    }
  }
  upload_constants(*code);
  for (const artifact::Plan::Body& body : plan->bodies) {
    if (body.node < 0 || static_cast<size_t>(body.node) >= graph->nodes.size() || body.body < 0 ||
        static_cast<size_t>(body.body) >= graph->nodes[static_cast<size_t>(body.node)].bodies.size() ||
        body.plan.size() != 1)
      throw Error(Code::kCorrupt, "plan: a control body does not exist");
    code->bodies[{body.node, body.body}] = make_executable(
        device, graph->nodes[static_cast<size_t>(body.node)].bodies[static_cast<size_t>(body.body)],
        std::make_shared<artifact::Plan>(body.plan[0]), programs);
  }
  return code;
}

}  // namespace thrice::exec
