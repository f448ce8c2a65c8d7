// Builds one graph (the model's, or a body of If, Loop, Scan) while the model's nodes are read: every node is
// inferred as it is added, and names of the model are resolved to values, through the graphs around a body
// where needed.
//
// Building a body inside an import function (LSTM as a scan, for instance):
//   GraphBuilder body(ctx.builder());                        // nested: may use outer values through
//   capture() NodeContext in(body, ctx.node(), ctx.opset());           // the same emit() and facts, inside
//   the body ValueId h = body.add_input(ctx.type(h0), "h");           // carried inputs first, then one per
//   scanned input ValueId x = body.add_input({dtype, {batch, size}}, "x"); // (its type is the scanned
//   value's without that axis) ValueId w = body.capture(w_outer);                       // constants are
//   copied in; others become extra inputs
//   ... in.emit(...) ...
//   auto results = emit_scan(ctx, body, {h0}, {xs}, {h_next, y}, {.input_axes = {0}});
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/onnx/node_context.h"
#include "ir/infer.h"

namespace thrice::frontend::onnx {

struct ImportState;  // import_state.h: what all graphs of one import share

class GraphBuilder {
 public:
  explicit GraphBuilder(ImportState& state) : state_(state) {}
  explicit GraphBuilder(GraphBuilder& outer);
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  // Values.
  ValueId add_input(ir::Type type, const std::string& name);
  ValueId constant(Tensor tensor, const std::string& name = {});
  // The body's own value for a value of the graph around it. The same outer value gives the same inner one.
  // In the outermost graph it returns `outer`.
  ValueId capture(ValueId outer);
  const std::vector<ValueId>& captured() const {
    return captured_;
  }  // outer values, in the order of body inputs

  // Nodes. Types are inferred at once; a node whose operands are all small constants becomes a constant.
  std::vector<ValueId> emit(Op op, const std::vector<ValueId>& inputs, size_t num_outputs,
                            Attributes attrs = {});
  // A finished node, with bodies for control; its outputs are made here. `may_fold` = false keeps it a node.
  std::vector<ValueId> emit_node(ir::Node node, size_t num_outputs, bool may_fold = true);
  // i64 vector whose elements are these expressions.
  ValueId dims(const std::vector<Dim>& values);

  ir::Graph& graph() { return graph_; }
  const ir::Graph& graph() const { return graph_; }
  // These references stay good while nodes are added, which the graph's own vector would not grant.
  const ir::Type& type(ValueId value) const;
  const Tensor* constant_value(ValueId value) const;  // nullptr when not a constant
  Dim fresh_symbol(const std::string& hint);
  ImportState& state() { return state_; }
  void set_origin(ir::Origin origin);  // of the nodes that follow
  const ir::Origin& origin() const { return current_origin_; }

  // Names of the model. A function's scope hides the caller's names, a block's (the taken branch of a
  // constant If) adds to them.
  void push_scope(bool function);
  void pop_scope();
  void define(const std::string& name, ValueId value);
  ValueId resolve(const std::string& name);  // captures where the name belongs to a graph around this one

 private:
  ValueId register_value(ValueId value);
  std::optional<std::pair<ValueId, int64_t>> find_extent(
      const Dim& dim);                // a value and axis with this extent
  ValueId scalar_of(const Dim& dim);  // i64 [1]
  ValueId scalar_of_atom(const Dim::Atom& atom);
  bool fold(const ir::Node& node, const std::vector<ir::Fact>& results, std::vector<ValueId>& outputs);
  std::vector<ir::Fact> infer(const ir::Node& node);

  ImportState& state_;
  GraphBuilder* outer_ = nullptr;
  ir::Graph graph_;
  ir::Origin current_origin_;
  bool origin_added_ = false;
  struct Scope {
    std::map<std::string, ValueId> names;
    bool hides_outer = false;
  };
  std::vector<Scope> scopes_{1};
  std::vector<ValueId> captured_;
  std::map<ValueId, ValueId> captured_as_;
  std::map<Dim, std::pair<ValueId, int64_t>> extents_;
  mutable std::deque<ir::Type> types_;  // by value, filled when asked
  mutable std::map<ValueId, Tensor> constants_;
};

struct ScanLayout {
  std::vector<int64_t> input_axes;        // one per scanned input; empty: all 0
  std::vector<int64_t> input_directions;  // 1 = reverse; empty: all forward
  std::vector<int64_t> output_axes;       // one per stacked result
  std::vector<int64_t> output_directions;
};
// Closes `body` (its inputs: carried, then scanned; results: carried, then stacked) and emits the `scan` node
// into ctx's graph. Returns the node's outputs: last carried values, then stacked ones. Errors: kInternal
// when counts do not fit, kInvalidModel when a carried value changes its type.
std::vector<ValueId> emit_scan(NodeContext& ctx, GraphBuilder& body, const std::vector<ValueId>& carried,
                               const std::vector<ValueId>& scanned, const std::vector<ValueId>& body_results,
                               const ScanLayout& layout = {});

}  // namespace thrice::frontend::onnx
