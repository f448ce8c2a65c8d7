#include "flow/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "ir/evaluate.h"

namespace thrice::flow {

RunCheck check_run(exec::Executor& executor, const std::vector<ir::Tensor>& inputs, bool bisect) {
  const ir::Graph& graph = *executor.code().graph;
  std::map<ir::ValueId, ir::ArrayPtr> reference;
  ir::EvaluateOptions evaluate;
  if (bisect)
    evaluate.observe = [&](const ir::Node& node, const std::vector<ir::ArrayPtr>& results) {
      // Nodes of control bodies are other graphs' nodes: only this graph's own are kept.
      if (&node < graph.nodes.data() || &node >= graph.nodes.data() + graph.nodes.size()) return;
      for (size_t o = 0; o < results.size() && o < node.outputs.size(); ++o)
        if (node.outputs[o] != ir::kNoValue) reference[node.outputs[o]] = results[o];
    };
  std::vector<ir::ArrayPtr> arrays;
  for (const ir::Tensor& t : inputs) arrays.push_back(ir::to_array(t));
  const std::vector<ir::ArrayPtr> expected = ir::evaluate_graph(graph, arrays, evaluate);

  RunCheck check;
  std::map<ir::ValueId, double> error_of;
  bool found = false;
  exec::RunOptions options;
  if (bisect)
    options.observe = [&](const exec::StepEvent& event) {
      if (found || event.code->step->kind != artifact::StepKind::kRegion) return;
      double inherited = 0;
      for (ir::ValueId v : event.code->workload.inputs)
        if (const auto it = error_of.find(v); it != error_of.end())
          inherited = std::max(inherited, it->second);
      StepCheck step{event.segment, event.step, event.code->name, event.code->step->schedule.str()};
      for (ir::ValueId v : event.code->workload.outputs) {
        const auto it = reference.find(v);
        if (it == reference.end()) continue;
        const double limit = ir::error_limit(graph.value(v).type.dtype, -1) + 2 * inherited;
        const ir::Tensor result = event.read(v);
        const ir::Comparison c = ir::compare(result, *it->second, limit);
        // Nothing but NaN and infinities, all where the reference has them: right, for these inputs.
        if (ir::nothing_compared(c, result)) continue;
        error_of[v] = c.error;
        if (!(c.error <= step.error)) {
          step.error = c.error;
          step.limit = limit;
        }
        if (!c.ok && step.ok) {
          step.ok = false;
          step.reason = c.reason;
          found = true;
        }
      }
      check.steps.push_back(std::move(step));
    };
  const std::vector<ir::Tensor> results = executor.run_host(inputs, options);
  for (size_t o = 0; o < results.size(); ++o) {
    const double limit = ir::error_limit(results[o].dtype(), -1);
    const ir::Comparison c = ir::compare(results[o], *expected[o], limit);
    const bool only_classes = ir::nothing_compared(c, results[o]);
    check.outputs.push_back(
        {0, 0, graph.output_names[o], {}, c.error, limit, c.ok || only_classes, c.reason});
    check.ok = check.ok && (c.ok || only_classes);
  }
  return check;
}

}  // namespace thrice::flow
