// Catches: an attribute, extent or body that a release would lose, and damaged text that crashes or passes.
#include "ir/serialize.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>

#include "base/rng.h"
#include "ir/check.h"
#include "unit/ir/graph_maker.h"

namespace thrice::ir {
namespace {

const Dim n = Dim::symbol("batch size"), m = Dim::symbol("m");

// Every attribute kind, opaque extents, strings, an absent operand, an unwanted result, bodies with
// constants.
Graph rich_graph() {
  GraphMaker body;
  body.input({}, DType::kI64);
  const ValueId go = body.input({}, DType::kBool);
  const ValueId state = body.input({2});
  body.output(go);
  body.output(
      body.add(Op::add, {state, body.constant(Tensor::of(DType::kF32, {2}, std::vector<double>{1, 2}))}));
  GraphMaker g;
  g.graph.name = "rich";
  g.graph.origins.push_back({"Custom", "a/b", 17});
  g.graph.metadata["license"] = "none";
  const ValueId x = g.input({n, 2}), y = g.input({m, 2});
  const ValueId sum = g.add(Op::add, {x, y});
  Tensor weights = Tensor::of(DType::kF16, {2, 2}, std::vector<double>{1, -2, 0.5, 4});
  g.constant(weights);
  g.constant(weights);
  g.constant(Tensor::strings({2}, {"red", "green"}));
  const ValueId half = g.add(Op::slice, {sum, g.ints({1}), g.ints({INT64_MAX}), g.ints({2})},
                             {{"axes", std::vector<int64_t>{0}}});
  const ValueId loop = g.add(Op::loop, {g.constant(Tensor::scalar(DType::kI64, 3)), kNoValue, g.input({2})},
                             {{"num_carried", int64_t{1}}, {"num_scan_outputs", int64_t{0}}}, 1,
                             {std::make_shared<const Graph>(body.graph)});
  g.add(Op::relu, {half},
        {{"i", INT64_MIN},
         {"f", 0.1},
         {"negative_zero", -0.0},
         {"inf", -INFINITY},
         {"s", std::string("text \"quoted\"")},
         {"bytes", std::string("\xff\x00\x80", 3)},
         {"fs", std::vector<double>{1.5, INFINITY, 1e-310}},
         {"is", std::vector<int64_t>{}}});
  g.graph.nodes.back().origin = 0;
  g.add(Op::unique, {x}, {}, 4);
  g.graph.nodes.back().outputs[1] = kNoValue;
  g.output(half);
  g.output(loop);
  return g.infer();
}

TEST(Serialize, RoundTrip) {
  const Graph graph = rich_graph();
  const SerializedGraph stored = serialize(graph);
  const Graph back = deserialize(stored.json, stored.constants);
  EXPECT_EQ(print(back), print(graph));
  EXPECT_EQ(structural_hash(back), structural_hash(graph));
  EXPECT_EQ(serialize(back).json, stored.json);
  EXPECT_EQ(back.metadata, graph.metadata);
  EXPECT_EQ(back.input_names, graph.input_names);
  EXPECT_EQ(back.origins[0].name, "a/b");
  const Attributes &a = back.nodes[3].attrs, &b = graph.nodes[3].attrs;
  ASSERT_EQ(back.nodes[3].op, Op::relu);
  EXPECT_EQ(a, b);
  EXPECT_TRUE(std::signbit(std::get<double>(a.at("negative_zero"))));
  for (size_t v = 0; v < graph.values.size(); ++v) {
    EXPECT_EQ(back.values[v].type, graph.values[v].type);
    EXPECT_EQ(back.values[v].known, graph.values[v].known);
  }
}

TEST(Serialize, EqualWeightsAreStoredOnceAndShared) {
  const Graph graph = rich_graph();
  const SerializedGraph stored = serialize(graph);
  size_t halves = 0;
  for (const Tensor& t : stored.constants) halves += t.dtype() == DType::kF16;
  EXPECT_EQ(halves, 1u);
}

TEST(Serialize, NanAttributesSurvive) {
  GraphMaker g;
  g.output(g.add(Op::relu, {g.input({2})}, {{"f", std::nan("")}}));
  g.infer();
  const SerializedGraph stored = serialize(g.graph);
  EXPECT_TRUE(std::isnan(deserialize(stored.json, stored.constants).nodes[0].float_attr("f", 0)));
}

// Thousands of one-byte damages: each gives kCorrupt, or a graph that passes verify.
TEST(Serialize, DamagedTextIsRefused) {
  const SerializedGraph stored = serialize(rich_graph());
  Rng rng(3);
  int refused = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = stored.json;
    const size_t at = rng.below(text.size());
    switch (rng.below(3)) {
      case 0:
        text[at] = static_cast<char>(' ' + static_cast<char>(rng.below(95)));
        break;
      case 1:
        text.erase(at, 1 + rng.below(20));
        break;
      default:
        text.insert(at, std::to_string(static_cast<int64_t>(rng.next())));
        break;
    }
    try {
      verify(deserialize(text, stored.constants));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::kCorrupt) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1500);
}

TEST(Serialize, HostileTexts) {
  const SerializedGraph stored = serialize(rich_graph());
  const auto refused = [&](const std::string& text) {
    try {
      deserialize(text, stored.constants);
      FAIL() << text.substr(0, 80);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kCorrupt) << error.what();
    }
  };
  refused("");
  refused("[]");
  refused("{\"version\":2}");
  refused(std::string(200000, '['));
  EXPECT_THROW(deserialize(stored.json, {}), Error);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = stored.json;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    refused(text.replace(at, from.size(), to));
  };
  with("\"in\":[0,", "\"in\":[99999,");
  with("\"op\":\"add\"", "\"op\":\"launch\"");
  with("\"type\":\"f32\"", "\"type\":\"f31\"");
  with("\"origin\":0", "\"origin\":7");
  with("\"known\":[1]", "\"known\":[]");
  std::string deep = "1";
  for (int i = 0; i < 5000; ++i) deep = "[[1,[[2," + deep + ",1]]]]";
  with("\"shape\":[2]", "\"shape\":[" + deep + "]");
}

}  // namespace
}  // namespace thrice::ir
