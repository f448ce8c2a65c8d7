// Catches rewrites that change values: x*0, symbolic length 1, zeros in reshape, merged nodes that differ in
// an attribute, convolution scales folded although an inner value is an output.
#include "transform/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "ir/check.h"
#include "ir/evaluate.h"
#include "ir/infer.h"

namespace thrice::transform {
namespace {

using ir::Dim;
using ir::Graph;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

struct Builder {
  Graph g;
  ValueId input(ir::Shape shape, DType dtype = DType::kF32) {
    const ValueId v = g.add_value({dtype, std::move(shape)}, "x");
    g.inputs.push_back(v);
    g.input_names.push_back("x" + std::to_string(g.inputs.size()));
    return v;
  }
  ValueId constant(const std::vector<int64_t>& shape, const std::vector<double>& values) {
    return g.add_constant(Tensor::of(DType::kF32, shape, values));
  }
  ValueId ints(const std::vector<int64_t>& values) { return g.add_constant(Tensor::ints(values)); }
  ValueId emit(Op op, const std::vector<ValueId>& inputs, ir::Attributes attrs = {}) {
    g.origins.push_back({std::string(ir::op_name(op)), "n" + std::to_string(g.nodes.size()), 17});
    ir::Node node;
    node.op = op;
    node.inputs = inputs;
    node.attrs = std::move(attrs);
    node.outputs = {g.add_value({})};
    node.origin = static_cast<int32_t>(g.origins.size()) - 1;
    const ValueId out = node.outputs[0];
    g.add_node(std::move(node));
    ir::infer_graph(g);
    return out;
  }
  void output(ValueId v) {
    g.outputs.push_back(v);
    g.output_names.push_back("y" + std::to_string(g.outputs.size()));
  }
};

std::vector<std::vector<double>> run(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<ir::ArrayPtr> arrays;
  for (const auto& t : inputs) arrays.push_back(ir::to_array(t));
  std::vector<std::vector<double>> results;
  for (const auto& a : ir::evaluate_graph(graph, arrays)) {
    const Tensor t = ir::to_tensor(*a);
    std::vector<double> values;
    for (int64_t i = 0; i < t.size(); ++i) values.push_back(t.as_double(i));
    results.push_back(values);
  }
  return results;
}

Graph transformed(Graph graph) {
  run_transforms(graph);
  ir::verify(graph);
  return graph;
}

int64_t count(const Graph& graph, Op op) {
  int64_t n = 0;
  for (const auto& node : graph.nodes) n += node.op == op;
  return n;
}

TEST(Transform, ZeroTimesNanStays) {
  Builder b;
  const ValueId x = b.input({3});
  b.output(b.emit(Op::mul, {x, b.constant({}, {0})}));
  b.output(b.emit(Op::sub, {x, x}));
  b.output(b.emit(Op::div, {x, x}));
  const auto y = run(transformed(b.g), {Tensor::of<double>(DType::kF32, {3}, {INFINITY, NAN, 2})});
  EXPECT_TRUE(std::isnan(y[0][0]) && std::isnan(y[0][1]) && y[0][2] == 0);
  EXPECT_TRUE(std::isnan(y[1][0]) && std::isnan(y[1][1]) && y[1][2] == 0);
  EXPECT_TRUE(std::isnan(y[2][0]) && std::isnan(y[2][1]) && y[2][2] == 1);
}

// Masks of later keys, whatever they were made of, are computed from indices, for each reader anew; what only
// looks like one stays.
TEST(Transform, MasksOfLaterKeysAreComputed) {
  for (const int64_t shift : {0, 3, -2}) {
    Builder b;
    const ValueId x = b.input({2, 67, 70}), y = b.input({2, 67, 70});
    std::vector<double> bias, flags, broken, keys, rows;
    for (int64_t m = 0; m < 67; ++m)
      for (int64_t n = 0; n < 70; ++n) {
        bias.push_back(n <= m + shift ? 0 : -INFINITY);
        flags.push_back(n <= m + shift);
      }
    broken = bias;
    broken[1000] = 1;
    for (int64_t n = 0; n < 70; ++n) keys.push_back(static_cast<double>(n));
    for (int64_t m = 0; m < 67; ++m) rows.push_back(static_cast<double>(m + shift));
    const ValueId held = b.constant({1, 67, 70}, bias);
    b.output(b.emit(Op::add, {x, held}));
    b.output(b.emit(Op::add, {held, y}));
    b.output(b.emit(Op::add, {x, b.constant({67, 70}, broken)}));
    const ValueId seen = b.g.add_constant(Tensor::of(DType::kBool, {67, 70}, flags));
    b.output(b.emit(Op::where, {seen, x, y}));
    const ValueId less = b.emit(Op::less_equal, {b.g.add_constant(Tensor::of(DType::kI64, {1, 70}, keys)),
                                                 b.g.add_constant(Tensor::of(DType::kI64, {67, 1}, rows))});
    b.output(b.emit(Op::add, {y, b.emit(Op::where, {less, b.constant({}, {1}), b.constant({}, {-5})})}));
    const Graph after = transformed(b.g);
    EXPECT_EQ(count(after, Op::iota), 8);
    EXPECT_EQ(count(after, Op::less_equal), 4);
    std::vector<double> values(9380);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 37) - 11;
    const Tensor in = Tensor::of(DType::kF32, {2, 67, 70}, values);
    EXPECT_EQ(run(after, {in, in}), run(b.g, {in, in}));
    EXPECT_EQ(count(transformed(after), Op::iota), 8);
  }
}

TEST(Transform, MergesOnlyEqualAttributes) {
  Builder b;
  const ValueId x = b.input({2, 3});
  for (const int64_t axis : {0, 1, 1}) {
    for (const int64_t reverse : {0, 1}) {
      b.output(b.emit(Op::neg, {b.emit(Op::scan_sum, {x},
                                       {{"axis", axis}, {"reverse", reverse}, {"exclusive", int64_t{0}}})}));
    }
  }
  const Graph after = transformed(b.g);
  EXPECT_EQ(count(after, Op::scan_sum), 4);
  const Tensor in = Tensor::of<double>(DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(after, {in}), run(b.g, {in}));
}

TEST(Transform, TransposeOfSymbolicLengthOneStays) {
  Builder b;
  const ValueId x = b.input({Dim::symbol("a"), Dim::symbol("b")});
  b.output(b.emit(Op::relu, {b.emit(Op::transpose, {x}, {{"perm", std::vector<int64_t>{1, 0}}})}));
  EXPECT_EQ(count(transformed(b.g), Op::transpose), 1);
}

TEST(Transform, MergesTransposesAndReshapes) {
  Builder b;
  const ValueId x = b.input({2, 3, 4});
  const ValueId t = b.emit(Op::transpose, {x}, {{"perm", std::vector<int64_t>{1, 2, 0}}});
  const ValueId back = b.emit(Op::transpose, {t}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
  const ValueId flat = b.emit(Op::reshape, {back, b.ints({-1})});
  b.output(b.emit(Op::neg, {b.emit(Op::reshape, {flat, b.ints({4, 6})})}));
  const Graph after = transformed(b.g);
  EXPECT_EQ(count(after, Op::transpose), 0);
  EXPECT_EQ(count(after, Op::reshape), 1);
}

TEST(Transform, FoldsConstantsButNotRandomOrLarge) {
  Builder b;
  const ValueId x = b.input({4});
  const ValueId sum = b.emit(Op::add, {b.constant({4}, {1, 2, 3, 4}), b.constant({}, {1})});
  b.output(b.emit(Op::mul, {x, sum}));
  const ValueId large = b.emit(Op::expand, {b.constant({1}, {2}), b.ints({1 << 20})});
  b.output(
      b.emit(Op::reduce, {b.emit(Op::neg, {large})},
             {{"kind", std::string("sum")}, {"axes", std::vector<int64_t>{0}}, {"keepdims", int64_t{0}}}));
  b.output(b.emit(Op::random, {b.ints({3})}, {{"kind", std::string("normal")}, {"seed", int64_t{1}}}));
  const Graph after = transformed(b.g);
  EXPECT_EQ(count(after, Op::add), 0);
  EXPECT_EQ(count(after, Op::expand), 1);
  EXPECT_EQ(count(after, Op::random), 1);
  EXPECT_EQ(run(after, {Tensor::of<double>(DType::kF32, {4}, {1, 1, 1, 1})})[0],
            (std::vector<double>{2, 3, 4, 5}));
}

// conv [1,2,3,3] * w [3,2,1,1], then scale and shift per channel.
Graph conv_graph(bool inner_output, double scale0) {
  Builder b;
  const ValueId x = b.input({1, 2, 3, 3});
  const ir::Attributes attrs = {{"strides", std::vector<int64_t>{1, 1}},
                                {"dilations", std::vector<int64_t>{1, 1}},
                                {"pads", std::vector<int64_t>{0, 0, 0, 0}},
                                {"group", int64_t{1}},
                                {"auto_pad", std::string("notset")}};
  const ValueId conv = b.emit(Op::conv, {x, b.constant({3, 2, 1, 1}, {1, 2, 3, 4, 5, 6})}, attrs);
  const ValueId centred = b.emit(Op::sub, {conv, b.constant({3, 1, 1}, {0.5, -1, 2})});
  const ValueId scaled = b.emit(Op::mul, {centred, b.constant({1, 3, 1, 1}, {scale0, -2, 1e-3})});
  b.output(b.emit(Op::relu, {b.emit(Op::add, {scaled, b.constant({3, 1, 1}, {1, 2, 3})})}));
  if (inner_output) b.output(centred);
  return b.g;
}

TEST(Transform, ConvScaleGoesIntoWeights) {
  Rng rng(1);
  std::vector<double> values(18);
  for (double& v : values) v = rng.normal();
  const Tensor in = Tensor::of(DType::kF32, {1, 2, 3, 3}, values);
  const Graph plain = transformed(conv_graph(false, 3));
  EXPECT_EQ(plain.nodes.size(), 2u) << ir::print(plain);
  const auto want = run(conv_graph(false, 3), {in}), got = run(plain, {in});
  for (size_t i = 0; i < want[0].size(); ++i) EXPECT_NEAR(got[0][i], want[0][i], 1e-5);

  const Graph kept = transformed(conv_graph(true, 3));  // only the shift before the output may go in
  EXPECT_EQ(count(kept, Op::mul), 1);
  EXPECT_EQ(kept.outputs.size(), 2u);
  const auto both = run(kept, {in}), both_want = run(conv_graph(true, 3), {in});
  for (size_t i = 0; i < both_want[1].size(); ++i) EXPECT_NEAR(both[1][i], both_want[1][i], 1e-5);

  const Graph zero = transformed(conv_graph(false, 0));  // 0 * Inf is NaN, and must stay so
  EXPECT_EQ(count(zero, Op::mul), 1);
  std::vector<double> infinite(18, 1);
  infinite[0] = INFINITY;
  EXPECT_TRUE(std::isnan(run(zero, {Tensor::of(DType::kF32, {1, 2, 3, 3}, infinite)})[0][0]));
}

TEST(Transform, OutputsKeepNodesOfTheirOwn) {
  Builder b;
  const ValueId x = b.input({2});
  b.output(b.emit(Op::identity, {x}));
  b.output(b.emit(Op::identity, {x}));
  b.output(b.emit(Op::identity, {b.constant({1}, {3})}));
  const Graph after = transformed(b.g);
  EXPECT_EQ(after.nodes.size(), 3u);
  EXPECT_EQ(run(after, {Tensor::of<double>(DType::kF32, {2}, {1, 2})})[2], (std::vector<double>{3}));
}

TEST(Transform, SaysWhatItDid) {
  Builder b;
  b.output(b.emit(Op::neg, {b.input({2})}));
  std::vector<std::string> lines;
  TransformOptions options;
  options.log = [&](const std::string& line) { lines.push_back(line); };
  const auto reports = run_transforms(b.g, options);
  for (const auto& report : reports) EXPECT_EQ(report.changes, 0) << report.pass;
  EXPECT_EQ(lines.at(0), "fold: (unchanged)");
}

// The shape of a result follows from the input's: nobody needs the result for it.
TEST(Transform, ShapesAreReadFromInputs) {
  Builder b;
  const ValueId x = b.input({Dim::symbol("n"), Dim(6)});
  const ValueId halves = b.emit(Op::reshape, {x, b.ints({-1, 3})});  // [2 n, 3]
  const ValueId shape = b.emit(Op::shape, {b.emit(Op::exp, {halves})});
  b.output(b.emit(Op::add, {shape, shape}));
  const Graph after = transformed(b.g);
  for (const ir::Node& node : after.nodes) {
    EXPECT_NE(node.op, Op::exp);
    if (node.op == Op::shape) {
      EXPECT_EQ(node.inputs[0], after.inputs[0]);
    }
  }
  for (const int64_t n : {0, 1, 5})
    EXPECT_EQ(run(after, {Tensor(DType::kF32, {n, 6})})[0],
              (std::vector<double>{4.0 * static_cast<double>(n), 6}));
}

// What only a run can tell stays where it is.
TEST(Transform, ShapesThatDependOnDataStay) {
  Builder b;
  const ValueId x = b.input({Dim::symbol("n")});
  b.output(b.emit(Op::shape, {b.emit(Op::nonzero, {x})}));
  const Graph after = transformed(b.g);
  EXPECT_EQ(run(after, {Tensor::of(DType::kF32, std::vector<int64_t>{3}, std::vector<double>{1, 0, 2})})[0],
            (std::vector<double>{1, 2}));
}

TEST(Transform, ProductsOfOneOperandAreJoined) {
  for (const bool adds : {false, true}) {
    Builder b;
    const ValueId x = b.input({Dim(2), Dim::symbol("n"), Dim(3)});
    for (const double first : {1.0, -2.0, 5.0}) {
      ValueId y = b.emit(Op::matmul, {x, b.constant({3, 2}, {first, 2, 3, 4, 5, first})});
      if (adds) y = b.emit(Op::add, {y, b.constant({2}, {first, 7})});
      b.output(b.emit(Op::exp, {y}));
    }
    const Graph after = transformed(b.g);
    EXPECT_EQ(std::count_if(after.nodes.begin(), after.nodes.end(),
                            [](const ir::Node& n) { return n.op == Op::matmul; }),
              1);
    const Tensor input = Tensor::of(DType::kF32, std::vector<int64_t>{2, 2, 3},
                                    std::vector<double>{.1, .2, .3, -.4, .5, .6, .7, .8, -.9, 0, .1, .2});
    EXPECT_EQ(run(after, {input}), run(b.g, {input}));
  }
}

// A table that is looked up and multiplied with: too large to fold, it is read the other way round.
TEST(Transform, TransposedWeightsAreReadAsTheyLie) {
  Builder b;
  const ValueId x = b.input({Dim::symbol("n"), Dim(3)}), w = b.constant({2, 3}, {1, 2, 3, 4, 5, 6});
  const ir::Attributes turned{{"perm", std::vector<int64_t>{1, 0}}};
  const ValueId y = b.emit(Op::matmul, {x, b.emit(Op::transpose, {w}, turned)});
  b.output(y);
  // Turned twice is not turned; what is no constant stays.
  b.output(b.emit(Op::matmul, {y, b.emit(Op::transpose, {w}, turned)}, {{"trans_b", int64_t{1}}}));
  b.output(b.emit(Op::matmul, {b.emit(Op::transpose, {x}, turned), x}));
  Graph after = b.g;
  TransformOptions options;
  options.max_folded_bytes = 0;
  run_transforms(after, options);
  EXPECT_EQ(std::count_if(after.nodes.begin(), after.nodes.end(),
                          [](const ir::Node& n) { return n.op == Op::transpose; }),
            1);
  const Tensor input =
      Tensor::of(DType::kF32, std::vector<int64_t>{2, 3}, std::vector<double>{.1, .2, .3, -.4, .5, .6});
  EXPECT_EQ(run(after, {input}), run(b.g, {input}));
}

}  // namespace
}  // namespace thrice::transform
