// Would catch: values freed too early, wrong carried state or scan order in control flow, lost error context.
#include "unit/ir_evaluate/arrays.h"

namespace thrice::ir::testing {
namespace {

ValueId emit(Graph& g, Op op, std::vector<ValueId> inputs, Attributes attrs = {}, size_t outputs = 1) {
  Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  for (size_t k = 0; k < outputs; ++k) node.outputs.push_back(g.add_value({}));
  const ValueId first = node.outputs[0];
  g.add_node(std::move(node));
  return first;
}
ValueId input(Graph& g, DType dtype = DType::kF32) {
  const ValueId v = g.add_value({dtype, {}});
  g.inputs.push_back(v);
  return v;
}

TEST(Graph, ValuesLiveUntilTheirLastUse) {
  Graph g;
  const ValueId x = input(g), two = g.add_constant(Tensor::scalar(DType::kF32, 2));
  const ValueId a = emit(g, Op::mul, {x, two}), b = emit(g, Op::add, {a, two}), c = emit(g, Op::mul, {b, a});
  g.outputs = {c, a, x, two};
  int seen = 0;
  EvaluateOptions options;
  options.observe = [&](const Node&, const std::vector<ArrayPtr>& results) { seen += results[0] != nullptr; };
  const auto y = evaluate_graph(g, {floats({}, {3})}, options);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(y[0]->f[0], 48);
  EXPECT_EQ(y[1]->f[0], 6);
  EXPECT_EQ(y[2]->f[0], 3);
  EXPECT_EQ(y[3]->f[0], 2);
  options.cancelled = [] { return true; };
  EXPECT_THROW(evaluate_graph(g, {floats({}, {3})}, options), Error);
  EXPECT_THROW(evaluate_graph(g, {}), Error);
}

// Nothing is written where a shape has no elements, and products of extents do not wrap.
TEST(Graph, AReshapeThatDoesNotFitIsRefused) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {0, -1}, {0}, {4, -1}, {int64_t{1} << 62, 4, 6}, {int64_t{1} << 32, int64_t{1} << 32, -1}}) {
    Graph g;
    const ValueId x = input(g), to = input(g, DType::kI64);
    g.outputs = {emit(g, Op::reshape, {x, to}, {{"allowzero", int64_t{1}}})};
    EXPECT_THROW(evaluate_graph(g, {counting({6}), vec(shape)}), Error) << shape[0];
  }
}

TEST(Graph, ErrorsNameTheModelsOperator) {
  Graph g;
  const ValueId x = input(g), y = input(g);
  g.outputs = {emit(g, Op::add, {x, y})};
  g.origins.push_back({"Add", "stage/add_7", 17});
  g.nodes[0].origin = 0;
  try {
    evaluate_graph(g, {counting({2}), counting({3})});
    FAIL() << "shapes do not broadcast";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kInvalidModel);
    EXPECT_NE(std::string(e.what()).find("stage/add_7"), std::string::npos) << e.what();
  }
}

std::shared_ptr<const Graph> scaled(double factor) {
  auto g = std::make_shared<Graph>();
  const ValueId x = input(*g);
  g->outputs = {emit(*g, Op::mul, {x, g->add_constant(Tensor::scalar(DType::kF32, factor))})};
  return g;
}

TEST(Control, IfTakesOneBranch) {
  Graph g;
  const ValueId c = input(g, DType::kBool), x = input(g);
  g.outputs = {emit(g, Op::if_, {c, x})};
  g.nodes[0].bodies = {scaled(10), scaled(100)};
  EXPECT_EQ(evaluate_graph(g, {ints({}, {1}, DType::kBool), floats({}, {2})})[0]->f[0], 20);
  EXPECT_EQ(evaluate_graph(g, {ints({}, {0}, DType::kBool), floats({}, {2})})[0]->f[0], 200);
}

// state *= captured; stops when state > 50; scans out the state before.
Graph loop_graph() {
  auto body = std::make_shared<Graph>();
  input(*body, DType::kI64);
  input(*body, DType::kBool);
  const ValueId state = input(*body), captured = input(*body);
  const ValueId next = emit(*body, Op::mul, {state, captured});
  const ValueId limit = body->add_constant(Tensor::scalar(DType::kF32, 50));
  body->outputs = {emit(*body, Op::less_equal, {next, limit}), next, emit(*body, Op::identity, {state})};
  body->value(body->outputs[2]).type = {DType::kF32, {}};
  Graph g;
  const ValueId trips = input(g, DType::kI64), x = input(g), factor = input(g);
  const ValueId first = emit(g, Op::loop, {trips, kNoValue, x, factor},
                             {{"num_carried", int64_t{1}}, {"num_scan_outputs", int64_t{1}}}, 2);
  g.nodes[0].bodies = {body};
  g.outputs = {first, first + 1};
  return g;
}

TEST(Control, LoopStopsByConditionByTripsAndNeverRuns) {
  const Graph g = loop_graph();
  auto y = evaluate_graph(g, {ints({}, {100}), floats({}, {1}), floats({}, {3})});
  EXPECT_EQ(y[0]->f[0], 81);
  expect_near(*y[1], {4}, {1, 3, 9, 27});
  y = evaluate_graph(g, {ints({}, {2}), floats({}, {1}), floats({}, {3})});
  EXPECT_EQ(y[0]->f[0], 9);
  y = evaluate_graph(g, {ints({}, {0}), floats({}, {1}), floats({}, {3})});
  EXPECT_EQ(y[0]->f[0], 1);
  EXPECT_EQ(y[1]->shape, (Ints{0}));
}

TEST(Control, ScanAlongAnotherAxisBackwards) {
  // sum += slice; emits sum. x is [2, 3], scanned along axis 1 from the end, stacked along axis 1 from the
  // end.
  auto body = std::make_shared<Graph>();
  const ValueId sum = input(*body), slice = input(*body);
  const ValueId next = emit(*body, Op::add, {sum, slice});
  body->outputs = {next, emit(*body, Op::identity, {next})};
  Graph g;
  const ValueId start = input(g), x = input(g);
  const ValueId first = emit(g, Op::scan, {start, x},
                             {{"num_carried", int64_t{1}},
                              {"num_scanned", int64_t{1}},
                              {"scan_input_axes", Ints{1}},
                              {"scan_input_directions", Ints{1}},
                              {"scan_output_axes", Ints{1}},
                              {"scan_output_directions", Ints{1}}},
                             2);
  g.nodes[0].bodies = {body};
  g.outputs = {first, first + 1};
  const auto y = evaluate_graph(g, {floats({2}, {0, 0}), floats({2, 3}, {1, 2, 3, 10, 20, 30})});
  expect_near(*y[0], {2}, {6, 60});
  expect_near(*y[1], {2, 3}, {6, 5, 3, 60, 50, 30});
}

}  // namespace
}  // namespace thrice::ir::testing
