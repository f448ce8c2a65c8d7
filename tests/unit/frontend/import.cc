// Catches lost names, symbols that do not unify, functions whose attributes or scopes leak, bodies that miss
// captures.
#include "frontend/import.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "ir/check.h"
#include "ir/evaluate.h"
#include "unit/frontend/model_writer.h"

namespace thrice::frontend {
namespace {

using namespace thrice::tests;

ir::Graph import(const std::string& file, const ImportOptions& options = {}) {
  ir::Graph graph = import_model_bytes(std::as_bytes(std::span(file)), "", options);
  ir::verify(graph);
  return graph;
}

std::vector<double> run(const ir::Graph& graph, const std::vector<ir::Tensor>& inputs, size_t output = 0) {
  std::vector<ir::ArrayPtr> arrays;
  for (const auto& t : inputs) arrays.push_back(ir::to_array(t));
  const auto results = ir::evaluate_graph(graph, arrays);
  const ir::Tensor t = ir::to_tensor(*results.at(output));
  std::vector<double> values;
  for (int64_t i = 0; i < t.size(); ++i) values.push_back(t.as_double(i));
  return values;
}

ir::Tensor f32(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  return ir::Tensor::of(DType::kF32, shape, values);
}

TEST(Import, SymbolsAndOverrides) {
  const std::string file = model({{node("Add", {"x", "z"}, {"y"})},
                                  {},
                                  {value("x", 1, {"n", "?"}), value("z", 1, {"n", "1"})},
                                  {value("y", 1, {"n", "?"})}});
  const ir::Graph plain = import(file);
  EXPECT_EQ(plain.value(plain.inputs[0]).type.shape[0].str(), "n");
  EXPECT_FALSE(plain.value(plain.inputs[0]).type.shape[1].is_const());
  ImportOptions options;
  options.input_shapes["x"] = {4, ir::Dim::symbol("w")};
  const ir::Graph fixed = import(file, options);
  // n = 4 holds for every input that names n.
  EXPECT_EQ(ir::shape_str(fixed.value(fixed.inputs[1]).type.shape), "[4, 1]");
  EXPECT_EQ(ir::shape_str(fixed.value(fixed.outputs[0]).type.shape), "[4, w]");
  options.symbols["n"] = 5;
  EXPECT_THROW(import(file, options), Error);
  ImportOptions wrong;
  wrong.input_shapes["q"] = {1};
  EXPECT_THROW(import(file, wrong), Error);
}

TEST(Import, ExtentsThatDependOnOthers) {
  const auto extent = [](const std::string& text, const ImportOptions& options = {}) {
    const ir::Graph graph = import(model({{node("Relu", {"x"}, {"y"}), node("Relu", {"z"}, {"w"})},
                                          {},
                                          {value("x", 1, {text}), value("z", 1, {"n", "m.1"})},
                                          {value("y", 1, {text}), value("w", 1, {"n", "m.1"})}}),
                                   options);
    return graph.value(graph.inputs[0]).type.shape[0];
  };
  const ir::Dim n = ir::Dim::symbol("n"), m = ir::Dim::symbol("m.1");
  EXPECT_EQ(extent("n + 1"), n + 1);
  EXPECT_EQ(extent("1+2*n - m.1"), n * 2 - m + 1);
  EXPECT_EQ(extent("(n*(m.1 + 3))//4"), floor_div(n * (m + 3), 4));
  // No input has these alone, or they are no expressions: names, whatever they hold.
  for (const char* text :
       {"k + 1", "n + k", "n +", "n//0", "batch-size", "n m", "Max(1, n)", "n**2", "2*", "((n)", "-n"})
    EXPECT_EQ(extent(text), ir::Dim::symbol(text)) << text;
  ImportOptions options;
  options.symbols["n"] = 6;
  EXPECT_EQ(extent("n + 1", options), ir::Dim(7));
}

TEST(Import, InitializersAreInputDefaultsAndConstInputs) {
  const std::string file = model({{node("Add", {"x", "w"}, {"y"})},
                                  {floats("w", {2}, {1, 2})},
                                  {value("x", 1, {"2"}), value("w", 1, {"2"})},
                                  {value("y", 1, {"2"})}});
  const ir::Graph graph = import(file);
  ASSERT_EQ(graph.input_names, (std::vector<std::string>{"x"}));
  EXPECT_EQ(run(graph, {f32({2}, {10, 20})}), (std::vector<double>{11, 22}));
  ImportOptions options;
  options.known_inputs["w"] = f32({2}, {5, 6});
  EXPECT_EQ(run(import(file, options), {f32({2}, {10, 20})}), (std::vector<double>{15, 26}));
}

TEST(Import, OutputsOwnTheirValues) {
  const ir::Graph graph = import(
      model({{node("Identity", {"x"}, {"y0"}), node("Identity", {"x"}, {"y1"})},
             {floats("w", {1}, {3})},
             {value("x", 1, {"1"})},
             {value("y0", 1, {"1"}), value("y1", 1, {"1"}), value("w", 1, {"1"}), value("x", 1, {"1"})}}));
  std::set<ir::ValueId> distinct(graph.outputs.begin(), graph.outputs.end());
  EXPECT_EQ(distinct.size(), 4u);
  for (const ir::ValueId output : graph.outputs) EXPECT_GE(graph.value(output).producer, 0);
  EXPECT_EQ(run(graph, {f32({1}, {7})}, 2), (std::vector<double>{3}));
}

TEST(Import, FunctionsWithAttributesAndOwnNames) {
  // F(a) = Neg(Relu(a)) over a temporary called "x", the caller's name; G(b) calls F twice.
  const auto function = [](const std::string& name, const std::vector<std::string>& nodes,
                           const std::string& extra = "") {
    std::string out = text(1, name) + text(4, "a") + text(5, "b") + text(9, opset("", 17)) +
                      text(9, opset("local", 1)) + text(10, "local") + extra;
    for (const auto& n : nodes) out += text(7, n);
    return out;
  };
  const std::string inner =
      function("F",
               {node("Relu", {"a"}, {"x"}),
                node("ReduceSum", {"x", "axes"}, {"b"}, reference_attr("keepdims", "keep", 2)),
                node("Constant", {}, {"axes"}, tensor_attr("value", int64s("", {1}, {0})))},
               text(6, "keep"));
  const std::string outer = function("G", {node("F", {"a"}, {"b"}, int_attr("keep", 0), "local")});
  const std::string g = graph({{node("G", {"x"}, {"s"}, "", "local"), node("Add", {"s", "x"}, {"y"})},
                               {},
                               {value("x", 1, {"3"})},
                               {value("y", 1, {"3"}), value("s", 1, {})}});
  const ir::Graph graph_ = import(model(g, 17, {inner, outer}));
  EXPECT_EQ(graph_.value(graph_.outputs[1]).type.shape.size(),
            0u);  // keepdims = 0 came through two references
  EXPECT_EQ(run(graph_, {f32({3}, {1, -2, 3})}), (std::vector<double>{5, 2, 7}));
}

std::string branch(const std::string& op, const std::string& operand) {
  return graph({{node(op, {operand}, {"r"})}, {}, {}, {value("r", 1, {})}});
}

TEST(Import, IfConstantAndNot) {
  const std::string attrs =
      graph_attr("then_branch", branch("Neg", "x")) + graph_attr("else_branch", branch("Exp", "z"));
  const GraphParts parts{{node("If", {"c"}, {"y"}, attrs)},
                         {},
                         {value("c", 9, {}), value("x", 1, {"2"}), value("z", 1, {"2"})},
                         {value("y", 1, {"2"})}};
  const ir::Graph open = import(model(parts));
  const auto yes = ir::Tensor::of<int>(DType::kBool, {}, {1}),
             no = ir::Tensor::of<int>(DType::kBool, {}, {0});
  EXPECT_EQ(run(open, {yes, f32({2}, {1, 2}), f32({2}, {0, 0})}), (std::vector<double>{-1, -2}));
  EXPECT_EQ(run(open, {no, f32({2}, {1, 2}), f32({2}, {0, 0})}), (std::vector<double>{1, 1}));
  ImportOptions options;
  options.known_inputs["c"] = yes;
  const ir::Graph folded = import(model(parts), options);
  for (const auto& n : folded.nodes) EXPECT_NE(n.op, ir::Op::if_);
  EXPECT_EQ(run(folded, {f32({2}, {1, 2}), f32({2}, {0, 0})}), (std::vector<double>{-1, -2}));
}

TEST(Import, LoopWhoseCarriedValueGrows) {
  // v = concat(v, k): the extent of v is not the same in every step, and k comes from outside.
  const std::string body =
      graph({{node("Concat", {"v", "k"}, {"v2"}, int_attr("axis", 0)), node("Identity", {"c"}, {"c2"}),
              node("ReduceMax", {"v2"}, {"s"}, int_attr("keepdims", 0))},
             {},
             {value("i", 7, {}), value("c", 9, {}), value("v", 1, {"?"})},
             {value("c2", 9, {}), value("v2", 1, {"?"}), value("s", 1, {})}});
  const ir::Graph graph_ =
      import(model({{node("Loop", {"M", "", "x"}, {"y", "scan"}, graph_attr("body", body))},
                    {},
                    {value("M", 7, {}), value("x", 1, {"2"}), value("k", 1, {"1"})},
                    {value("y", 1, {"?"}), value("scan", 1, {"?"})}}));
  const auto three = ir::Tensor::of<int>(DType::kI64, {}, {3}),
             none = ir::Tensor::of<int>(DType::kI64, {}, {0});
  EXPECT_EQ(run(graph_, {three, f32({2}, {1, 2}), f32({1}, {9})}), (std::vector<double>{1, 2, 9, 9, 9}));
  EXPECT_EQ(run(graph_, {three, f32({2}, {1, 2}), f32({1}, {9})}, 1), (std::vector<double>{9, 9, 9}));
  EXPECT_EQ(run(graph_, {none, f32({2}, {1, 2}), f32({1}, {9})}, 1).size(), 0u);
}

TEST(Import, ScanAlongOtherAxes) {
  // Running sums of the columns of x[2,3], stacked as columns and, with a negative axis, last step first.
  const std::string body = graph(
      {{node("Add", {"s", "v"}, {"s2"}), node("Identity", {"s2"}, {"a"}), node("Identity", {"s2"}, {"b"})},
       {},
       {value("s", 1, {"2"}), value("v", 1, {"2"})},
       {value("s2", 1, {"2"}), value("a", 1, {"2"}), value("b", 1, {"2"})}});
  for (const int64_t axis : {1, -1}) {
    const ir::Graph g =
        import(model({{node("Scan", {"z", "x"}, {"last", "y", "w"},
                            int_attr("num_scan_inputs", 1) + ints_attr("scan_input_axes", {axis}) +
                                ints_attr("scan_output_axes", {axis, 0}) +
                                ints_attr("scan_output_directions", {0, 1}) + graph_attr("body", body))},
                      {},
                      {value("z", 1, {"2"}), value("x", 1, {"2", "n"})},
                      {value("last", 1, {"2"}), value("y", 1, {"?", "?"}), value("w", 1, {"?", "?"})}}));
    const std::vector<ir::Tensor> inputs = {f32({2}, {100, 200}), f32({2, 3}, {1, 2, 3, 4, 5, 6})};
    EXPECT_EQ(run(g, inputs), (std::vector<double>{106, 215}));
    EXPECT_EQ(run(g, inputs, 1), (std::vector<double>{101, 103, 106, 204, 209, 215}));
    EXPECT_EQ(run(g, inputs, 2), (std::vector<double>{106, 215, 103, 209, 101, 204}));
    EXPECT_EQ(ir::shape_str(g.value(g.outputs[1]).type.shape), "[2, n]");
  }
}

TEST(Import, RandomWeightsByRole) {
  const std::string w = external("w", 1, {256, 4}, {{"location", "thrice:stripped"}, {"length", "4096"}});
  const std::string s = external("s", 1, {512}, {{"location", "thrice:stripped"}});
  const std::string file = model({{node("MatMul", {"x", "w"}, {"y"}), node("Mul", {"z", "s"}, {"u"})},
                                  {w, s},
                                  {value("x", 1, {"1", "256"}), value("z", 1, {"512"})},
                                  {value("y", 1, {"1", "4"}), value("u", 1, {"512"})}});
  ImportOptions options;
  options.random_weights = true;
  options.weight_seed = 3;
  const ir::Graph a = import(file, options), b = import(file, options);
  EXPECT_EQ(ir::structural_hash(a), ir::structural_hash(b));
  options.weight_seed = 4;
  EXPECT_NE(ir::structural_hash(a), ir::structural_hash(import(file, options)));
  for (const auto& value : a.values) {
    if (!value.constant || value.constant->size() < 512) continue;
    double sum = 0, squares = 0, low = 1e9;
    for (int64_t i = 0; i < value.constant->size(); ++i) {
      const double v = value.constant->as_double(i);
      sum += v, squares += v * v, low = std::min(low, v);
    }
    const auto n = static_cast<double>(value.constant->size());
    if (value.name == "w") {
      EXPECT_NEAR(squares / n, 1.0 / 256, 0.1 / 256 * 2);
      EXPECT_NEAR(sum / n, 0, 0.01);
    } else {
      EXPECT_GE(low, 0.5);
      EXPECT_NEAR(sum / n, 1, 0.05);
    }
  }
}

}  // namespace
}  // namespace thrice::frontend
