// Catches: equal layers that do not share a workload, a hash that ignores something that matters or heeds a
// name, regions that would make the graph cyclic, and bindings that accept shapes that do not fit.
#include "ir/region.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "ir/check.h"
#include "unit/ir/graph_maker.h"

namespace thrice::ir {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
using Ints = std::vector<int64_t>;

// Two dense layers alike: matmul, add, relu each; weights differ in value only.
struct TwoLayers : GraphMaker {
  ValueId x = input({n, 8});
  TwoLayers() {
    ValueId y = x;
    for (int layer = 0; layer < 2; ++layer) {
      Tensor w(DType::kF32, {8, 8});
      w.mutable_data();
      w.set(0, layer + 1);
      graph.origins.push_back({"Gemm", "layer" + std::to_string(layer), 13});
      y = add(Op::matmul, {y, constant(std::move(w))});
      y = add(Op::add, {y, constant(Tensor::of(DType::kF32, {8}, std::vector<double>(8, layer)))});
      y = add(Op::relu, {y});
      for (int i = 0; i < 3; ++i) graph.nodes[graph.nodes.size() - 1 - static_cast<size_t>(i)].origin = layer;
    }
    output(y);
    infer();
    verify(graph);
  }
};

TEST(Region, EqualLayersShareAWorkload) {
  TwoLayers g;
  const Workload a = extract(g.graph, make_region(g.graph, {0, 1, 2})),
                 b = extract(g.graph, make_region(g.graph, {3, 4, 5}));
  EXPECT_EQ(a.hash, b.hash);
  EXPECT_EQ(a.hash.size(), 32u);
  EXPECT_EQ(print(a.graph), print(b.graph));
  verify(a.graph);
  ASSERT_EQ(a.inputs.size(), 3u);  // x, weights, bias
  EXPECT_EQ(a.inputs[0], g.x);
  EXPECT_EQ(shape_str(a.graph.value(a.graph.inputs[0]).type.shape), "[s0, 8]");
  EXPECT_EQ(b.origins, (std::vector<int32_t>{1}));
  EXPECT_EQ(a.outputs.size(), 1u);
}

TEST(Region, HashHeedsStructureOnly) {
  const auto make = [](int64_t axis, const std::string& name, Dim extent, DType dtype, double scale) {
    GraphMaker g;
    const ValueId x = g.input({extent, 6}, dtype);
    g.graph.value(x).name = name;
    g.graph.name = name;
    g.graph.metadata["author"] = name;
    const ValueId s = g.add(Op::mul, {x, g.constant(Tensor::scalar(dtype, scale))});
    g.output(g.add(Op::reduce, {s}, {{"axes", Ints{axis}}, {"kind", std::string("sum")}}));
    return structural_hash(g.infer());
  };
  const std::string base = make(1, "a", n, DType::kF32, 2);
  EXPECT_EQ(base, make(1, "b", m, DType::kF32, 2));
  EXPECT_NE(base, make(0, "a", n, DType::kF32, 2));
  EXPECT_NE(base, make(1, "a", 4, DType::kF32, 2));
  EXPECT_NE(base, make(1, "a", n, DType::kF64, 2));
  EXPECT_NE(base, make(1, "a", n, DType::kF32, 3));
  EXPECT_NE(base, make(1, "a", n * 2, DType::kF32, 2));
}

TEST(Region, HashHeedsEdges) {
  const auto make = [](bool swapped, bool twice) {
    GraphMaker g;
    const ValueId x = g.input({4}), y = g.input({4});
    g.output(g.add(Op::sub, {swapped ? y : x, twice ? x : swapped ? x : y}));
    return structural_hash(g.infer());
  };
  EXPECT_NE(make(false, false), make(true, false));
  EXPECT_NE(make(false, false), make(false, true));
}

TEST(Region, EqualExtentsShareASymbolAndOthersDoNot) {
  const auto hash_of = [](const Dim& a, const Dim& b) {
    GraphMaker g;
    const ValueId x = g.input({a, 1}), y = g.input({1, b});
    g.output(g.add(Op::add, {x, y}));
    g.infer();
    return extract(g.graph, make_region(g.graph, {0})).hash;
  };
  EXPECT_EQ(hash_of(n, n), hash_of(n * 2 + m, n * 2 + m));
  EXPECT_EQ(hash_of(n, m), hash_of(m, n + 1));
  EXPECT_NE(hash_of(n, n), hash_of(n, m));
}

TEST(Region, ShapeOperandsComeWithTheirValue) {
  GraphMaker g;
  const ValueId x = g.input({n, m, 768});
  const ValueId shape = g.add(Op::shape, {x}, {{"end", int64_t{2}}});
  const ValueId wanted = g.add(Op::concat, {shape, g.ints({12, 64})}, {{"axis", int64_t{0}}});
  const ValueId split = g.add(Op::reshape, {x, wanted});
  const ValueId y = g.add(Op::transpose, {split}, {{"perm", Ints{0, 2, 1, 3}}});
  g.output(y);
  g.infer();
  const Workload w = extract(g.graph, make_region(g.graph, {2, 3}));
  ASSERT_EQ(w.inputs, (std::vector<ValueId>{x, wanted}));
  EXPECT_FALSE(is_shape_input(w, 0));
  EXPECT_TRUE(is_shape_input(w, 1));
  EXPECT_EQ(shape_str(w.graph.value(w.graph.outputs[0]).type.shape), "[s0, 12, s1, 64]");
  const std::vector<Fact> facts = ir::bind(w.graph, facts_at(w.graph, {{"s0", 2}, {"s1", 5}}));
  EXPECT_EQ(shape_str(facts[static_cast<size_t>(w.graph.outputs[0])].type.shape), "[2, 12, 5, 64]");
  // The value may be left out where the shapes say it all.
  std::vector<Fact> without = facts_at(w.graph, {{"s0", 2}, {"s1", 5}});
  without[1].known.reset();
  EXPECT_EQ(shape_str(ir::bind(w.graph, without)[static_cast<size_t>(w.graph.outputs[0])].type.shape),
            "[2, 12, 5, 64]");
}

TEST(Region, SmallAndShapeConstantsStay) {
  GraphMaker g;
  const ValueId x = g.input({n, 6});
  const ValueId scaled = g.add(Op::mul, {x, g.constant(Tensor::scalar(DType::kF32, 3))});
  const ValueId shifted = g.add(Op::add, {scaled, g.constant(Tensor(DType::kF32, {6}))});
  g.output(g.add(Op::reshape, {shifted, g.ints({0, 2, 3})}));
  g.infer();
  const Workload w = extract(g.graph, make_region(g.graph, {0, 1, 2}));
  EXPECT_EQ(w.inputs.size(), 2u);  // x and the bias; the scalar and the shape stay
  EXPECT_EQ(shape_str(w.graph.value(w.graph.outputs[0]).type.shape), "[s0, 2, 3]");
}

TEST(Region, BindRefusesWhatDoesNotFit) {
  GraphMaker g;
  const ValueId x = g.input({n, 6}), y = g.input({n, 6});
  g.output(g.add(Op::add, {x, y}));
  g.infer();
  const auto bound = [&](const Shape& a, const Shape& b, DType dtype = DType::kF32) {
    return ir::bind(g.graph,
                    {Fact{{dtype, a}, nullptr, std::nullopt}, Fact{{DType::kF32, b}, nullptr, std::nullopt}});
  };
  EXPECT_NO_THROW(bound({2, 6}, {2, 6}));
  EXPECT_NO_THROW(bound({0, 6}, {0, 6}));
  EXPECT_THROW(bound({2, 6}, {3, 6}), Error);
  EXPECT_THROW(bound({1, 6}, {3, 6}), Error);  // one symbol, two values
  EXPECT_THROW(bound({2, 7}, {2, 7}), Error);
  EXPECT_THROW(bound({2, 6, 1}, {2, 6, 1}), Error);
  EXPECT_THROW(bound({2, 6}, {2, 6}, DType::kF64), Error);
}

TEST(Region, Convexity) {
  // a -> b -> d, a -> c -> d, and e beside them.
  GraphMaker g;
  const ValueId x = g.input({4});
  const ValueId a = g.add(Op::neg, {x}), b = g.add(Op::exp, {a}), c = g.add(Op::abs, {a});
  const ValueId d = g.add(Op::add, {b, c}), e = g.add(Op::sqrt, {x});
  g.output(d);
  g.output(e);
  g.infer();
  const auto convex = [&](std::vector<NodeId> nodes) {
    return is_convex(g.graph, make_region(g.graph, std::move(nodes)));
  };
  EXPECT_TRUE(convex({0, 1, 2, 3}));
  EXPECT_TRUE(convex({0, 1}));
  EXPECT_TRUE(convex({1, 2}));
  EXPECT_TRUE(convex({0, 4}));
  EXPECT_TRUE(convex({3, 4}));
  EXPECT_FALSE(convex({0, 3}));
  EXPECT_FALSE(convex({0, 1, 3}));
  const Region both = make_region(g.graph, {2, 1, 1});
  EXPECT_EQ(both.nodes, (std::vector<NodeId>{1, 2}));
  EXPECT_EQ(both.inputs, (std::vector<ValueId>{a}));
  EXPECT_EQ(both.outputs, (std::vector<ValueId>{b, c}));
  EXPECT_EQ(consumers(g.graph)[static_cast<size_t>(a)], (std::vector<NodeId>{1, 2}));
}

TEST(Verify, BrokenGraphsAreNamed) {
  const auto broken = [](const std::function<void(Graph&)>& damage) {
    TwoLayers g;
    damage(g.graph);
    EXPECT_THROW(verify(g.graph), Error);
  };
  broken([](Graph& g) { g.nodes[1].inputs[0] = 99; });
  broken([](Graph& g) { g.nodes[1].inputs[0] = -7; });
  broken([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); });
  broken([](Graph& g) { g.nodes[2].outputs = g.nodes[1].outputs; });
  broken([](Graph& g) { g.outputs.push_back(-1); });
  broken([](Graph& g) { g.outputs[0] = 1000; });
  broken([](Graph& g) { g.nodes[0].origin = 5; });
  broken([](Graph& g) { g.value(g.nodes[0].outputs[0]).type.dtype = DType::kI32; });
  broken([](Graph& g) { g.value(g.nodes[0].outputs[0]).type.shape.emplace_back(1); });
  broken([](Graph& g) { g.nodes[2].inputs.push_back(g.inputs[0]); });
  broken([](Graph& g) { g.inputs.push_back(g.inputs[0]); });
  broken([](Graph& g) { g.nodes[2].bodies.push_back(nullptr); });
}

TEST(Print, Golden) {
  GraphMaker g;
  const ValueId x = g.input({n, 4}), w = g.input({6, 4});
  const ValueId y = g.add(Op::matmul, {x, w}, {{"trans_b", int64_t{1}}});
  g.output(g.add(Op::add, {y, g.constant(Tensor::scalar(DType::kF32, 0.5))}));
  EXPECT_EQ(print(g.infer()),
            "graph(%0: f32[n, 4], %1: f32[6, 4])\n"
            "  %3 = constant {0.5} : f32[]\n"
            "  %2 = matmul(%0, %1) {trans_b=1} : f32[n, 6]\n"
            "  %4 = add(%2, %3) : f32[n, 6]\n"
            "  return %4\n");
}

}  // namespace
}  // namespace thrice::ir
