#include "exec/lifetimes.h"

namespace thrice::exec {

using ir::ValueId;

Lifetimes find_lifetimes(const Executable& code) {
  const ir::Graph& graph = *code.graph;
  Lifetimes found;
  found.escapes.resize(code.segments.size());
  found.last_read.resize(code.segments.size());
  std::vector<uint8_t> read(graph.values.size(), 0), is_known(graph.values.size(), 0);
  for (ValueId v : graph.outputs) read[static_cast<size_t>(v)] = 1;
  for (size_t s = code.segments.size(); s-- > 0;) {
    found.escapes[s] = read;
    const auto last = [&](ValueId v) {
      if (v == ir::kNoValue || read[static_cast<size_t>(v)] || is_known[static_cast<size_t>(v)]) return;
      is_known[static_cast<size_t>(v)] = 1;
      found.last_read[s].push_back(v);
    };
    for (const StepCode& step : code.segments[s].steps)
      for (int32_t n : step.step->nodes) {
        const ir::Node& node = graph.nodes[static_cast<size_t>(n)];
        for (ValueId v : node.inputs) last(v);
        for (ValueId v : node.outputs) last(v);
      }
    for (const StepCode& step : code.segments[s].steps)
      for (int32_t n : step.step->nodes)
        for (ValueId v : graph.nodes[static_cast<size_t>(n)].inputs)
          if (v != ir::kNoValue) read[static_cast<size_t>(v)] = 1;
  }
  return found;
}

}  // namespace thrice::exec
