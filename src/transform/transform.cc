#include "transform/transform.h"

#include <fmt/format.h>

#include "ir/infer.h"
#include "transform/canonicalize.h"
#include "transform/fold.h"
#include "transform/rewrite.h"

namespace thrice::transform {
namespace {

// Passes feed each other for two or three rounds; the limit only ends a fight between two of them.
constexpr int kMaxRounds = 10;

struct Pass {
  const char* name;
  int64_t (*run)(ir::Graph&, const TransformOptions&);
};

// Order within a round: folding first (others look at constants), then nodes that do nothing (common nodes
// show only without them), merging, and dead nodes last, so that the next round counts readers rightly.
constexpr Pass kPasses[] = {
    {"fold", [](ir::Graph& g, const TransformOptions& o) { return fold_constants(g, o.max_folded_bytes); }},
    {"bypass", [](ir::Graph& g, const TransformOptions&) { return bypass_identities(g); }},
    {"views", [](ir::Graph& g, const TransformOptions&) { return merge_views(g); }},
    {"shapes", [](ir::Graph& g, const TransformOptions&) { return read_shapes_of_inputs(g); }},
    {"turn", [](ir::Graph& g, const TransformOptions&) { return turn_weights(g); }},
    {"common", [](ir::Graph& g, const TransformOptions&) { return merge_common(g); }},
    {"dead", [](ir::Graph& g, const TransformOptions&) { return remove_dead(g); }},
    {"join", [](ir::Graph& g, const TransformOptions&) { return join_products(g); }},
    {"conv_scale",
     [](ir::Graph& g, const TransformOptions& o) { return o.fold_conv_scale ? fold_conv_scale(g) : 0; }},
    {"dead", [](ir::Graph& g, const TransformOptions&) { return remove_dead(g); }},
};

void transform_one(ir::Graph& graph, const TransformOptions& options, std::vector<PassReport>& reports) {
  for (int round = 0; round < kMaxRounds; ++round) {
    int64_t changes = 0;
    for (const Pass& pass : kPasses) {
      const int64_t made = pass.run(graph, options);
      changes += made;
      for (auto& report : reports) {
        if (report.pass == pass.name) report.changes += made;
      }
    }
    if (changes == 0) break;
  }
  const int64_t unfolded = unfold_masks(graph);
  if (unfolded > 0) remove_dead(graph);
  for (auto& report : reports)
    if (report.pass == "masks") report.changes += unfolded;
  for (auto& node : graph.nodes) {
    for (auto& body : node.bodies) {
      ir::Graph inner = *body;
      transform_one(inner, options, reports);
      body = std::make_shared<const ir::Graph>(std::move(inner));
    }
  }
  compact(graph);
}

}  // namespace

std::vector<PassReport> run_transforms(ir::Graph& graph, const TransformOptions& options) {
  std::vector<PassReport> reports;
  for (const char* name :
       {"fold", "bypass", "views", "shapes", "turn", "common", "join", "conv_scale", "dead", "masks"})
    reports.push_back({name, 0});
  const size_t before = graph.nodes.size();
  transform_one(graph, options, reports);
  ir::infer_graph(graph);
  if (options.log) {
    for (const auto& report : reports) {
      options.log(report.changes == 0 ? fmt::format("{}: (unchanged)", report.pass)
                                      : fmt::format("{}: {} changes", report.pass, report.changes));
    }
    options.log(fmt::format("nodes: {} -> {}", before, graph.nodes.size()));
  }
  return reports;
}

}  // namespace thrice::transform
