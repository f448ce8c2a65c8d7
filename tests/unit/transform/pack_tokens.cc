// Catches: a packed model whose rows see padding or other sequences, masks read wrongly whatever their
// spelling, outputs unpacked to the wrong place, and models that depend on padding but are packed all the
// same.
#include "transform/pack_tokens.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>
#include <functional>

#include "ir/check.h"
#include "ir/evaluate.h"
#include "ir/infer.h"
#include "ir/inputs.h"

namespace thrice::transform {
namespace {

using ir::Attributes;
using ir::Dim;
using ir::Graph;
using ir::Op;
using ir::Tensor;
using ir::ValueId;
using Ints = std::vector<int64_t>;

constexpr int64_t kHidden = 8, kHeads = 2, kVocabulary = 20, kLongest = 64;

// A small encoder: embeddings of tokens and positions, layers of attention, and whatever stands behind.
struct Encoder {
  Graph g;
  Dim batch = Dim::symbol("batch"), length = Dim::symbol("length");
  ValueId ids, mask;
  int seed = 1;

  explicit Encoder(DType mask_type = DType::kI64, bool fixed = false) {
    if (fixed) batch = 3, length = 9;
    ids = input("ids", DType::kI64);
    mask = input("attention_mask", mask_type);
  }
  ValueId input(const std::string& name, DType dtype) {
    const ValueId v = g.add_value({dtype, {batch, length}}, name);
    g.inputs.push_back(v);
    g.input_names.push_back(name);
    return v;
  }
  ValueId op(Op op, const std::vector<ValueId>& inputs, Attributes attrs = {}) {
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
  ValueId weight(Ints shape) {
    return g.add_constant(
        ir::make_input(DType::kF32, shape, ir::InputKind::kNormal, static_cast<uint64_t>(seed++)));
  }
  ValueId number(double x, DType dtype = DType::kF32) { return g.add_constant(Tensor::scalar(dtype, x)); }
  ValueId ints(Ints values) { return g.add_constant(Tensor::ints(std::move(values))); }
  ValueId cast(ValueId v, DType to) {
    return op(Op::cast, {v}, {{"to", static_cast<int64_t>(to)}, {"saturate", int64_t{1}}});
  }
  ValueId reduce(ValueId v, const char* kind, int64_t axis, int64_t keep = 1) {
    return op(Op::reduce, {v}, {{"kind", std::string(kind)}, {"axes", Ints{axis}}, {"keepdims", keep}});
  }
  ValueId extent(int64_t axis) { return op(Op::shape, {ids}, {{"start", axis}, {"end", axis + 1}}); }
  ValueId reshape(ValueId v, const std::vector<ValueId>& parts) {
    return op(Op::reshape, {v, op(Op::concat, parts, {{"axis", int64_t{0}}})}, {{"allowzero", int64_t{0}}});
  }
  ValueId softmax(ValueId x, int64_t axis) {
    const ValueId e = op(Op::exp, {op(Op::sub, {x, reduce(x, "max", axis)})});
    return op(Op::div, {e, reduce(e, "sum", axis)});
  }
  ValueId embed() {
    const ValueId positions = op(Op::slice,
                                 {g.add_constant(Tensor::ints([] {
                                    Ints all;
                                    for (int64_t i = 0; i < kLongest; ++i) all.push_back(i);
                                    return all;
                                  }())),
                                  ints({0}), extent(1), ints({1})},
                                 {{"axes", Ints{0}}});
    const ValueId tokens = op(Op::gather, {weight({kVocabulary, kHidden}), ids}, {{"axis", int64_t{0}}});
    return op(Op::add,
              {tokens, op(Op::gather, {weight({kLongest, kHidden}), positions}, {{"axis", int64_t{0}}})});
  }
  ValueId heads(ValueId x, Ints perm) {
    const ValueId product = op(Op::matmul, {x, weight({kHidden, kHidden})});
    return op(Op::transpose, {reshape(product, {extent(0), extent(1), ints({kHeads, kHidden / kHeads})})},
              {{"perm", perm}});
  }
  // `hide` turns scores [batch, heads, length, length] into the softmax's operand.
  ValueId attend(ValueId x, const std::function<ValueId(ValueId)>& hide) {
    const ValueId scores = op(Op::matmul, {heads(x, {0, 2, 1, 3}), heads(x, {0, 2, 3, 1})});
    const ValueId weights = softmax(hide(op(Op::mul, {scores, number(0.5)})), 3);
    const ValueId mixed =
        op(Op::transpose, {op(Op::matmul, {weights, heads(x, {0, 2, 1, 3})})}, {{"perm", Ints{0, 2, 1, 3}}});
    return op(Op::add, {x, reshape(mixed, {extent(0), extent(1), ints({kHidden})})});
  }
  ValueId spread_mask() { return reshape(mask, {extent(0), ints({1, 1}), extent(1)}); }
  ValueId minus(double most) {  // (1 - mask) * -most
    const ValueId hidden = op(Op::sub, {number(1), cast(spread_mask(), DType::kF32)});
    return op(Op::mul, {hidden, number(-most)});
  }
  ValueId hide_all(ValueId scores) { return op(Op::add, {scores, minus(10000)}); }
  ValueId layer(ValueId x) {
    return attend(x, [&](ValueId s) { return hide_all(s); });
  }
};

std::vector<ir::ArrayPtr> evaluated(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<ir::ArrayPtr> arrays;
  for (const Tensor& t : inputs) arrays.push_back(ir::to_array(t));
  return ir::evaluate_graph(graph, arrays);
}

// Packs, and compares what counts in float64 on masks of all kinds. Returns what pack_tokens said.
Packing expect_same(const Encoder& encoder, bool allows_holes = true) {
  Graph packed = encoder.g;
  const Packing packing = pack_tokens(packed);
  ir::verify(packed);
  const bool is_fixed = encoder.batch.is_const();
  for (const int64_t length : is_fixed ? Ints{9} : Ints{1, 6, 9})
    for (int draw = 0; draw < 3; ++draw) {
      const ir::Bindings at{{"batch", 3}, {"length", length}};
      std::vector<Tensor> inputs = ir::make_inputs(encoder.g, at, ir::InputKind::kNormal, 7);
      const DType dtype = inputs[packing.mask_input].dtype();
      Tensor mask = ir::padding_mask(dtype, {3, length}, Ints{length, 1, (length + 1) / 2});
      if (draw == 1) mask = ir::padding_mask(dtype, {3, length}, Ints{0, length, 0});
      if (draw == 2 && allows_holes)  // at the left, and between
        for (int64_t i = 0; i < mask.size(); ++i) mask.set(i, i % 3 != 0 || i % length == 0 ? 1 : 0);
      inputs[packing.mask_input] = mask;
      const auto reference = evaluated(encoder.g, inputs), results = evaluated(packed, inputs);
      for (size_t o = 0; o < results.size(); ++o) {
        EXPECT_EQ(results[o]->shape, reference[o]->shape);
        const auto& [kind, axes] = packing.outputs[o];
        for (int64_t i = 0; i < results[o]->size(); ++i) {
          int64_t rest = i, b = 0, s = 0;
          for (int a = static_cast<int>(results[o]->shape.size()) - 1; a >= 0; --a) {
            const int64_t n = results[o]->shape[static_cast<size_t>(a)];
            if (a == axes.batch) b = rest % n;
            if (a == axes.tokens) s = rest % n;
            rest /= n;
          }
          const auto at_i = static_cast<size_t>(i);
          const bool counts = kind == PackedOutput::Kind::kExact || mask.as_int(b * length + s) != 0;
          if (counts) {
            EXPECT_NEAR(results[o]->f[at_i], reference[o]->f[at_i], 1e-9) << "output " << o << " at " << i;
          } else if (kind == PackedOutput::Kind::kPositions) {
            EXPECT_EQ(results[o]->f[at_i], 0);
          }
        }
      }
    }
  return packing;
}

// The sentence of the refusal; "" where it was packed.
std::string refusal(const Encoder& encoder) {
  Graph packed = encoder.g;
  try {
    pack_tokens(packed);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
    return e.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PackTokens, EncoderWithAnAddedMask) {
  for (const bool fixed : {false, true}) {
    Encoder e(DType::kI64, fixed);
    e.output(e.layer(e.layer(e.embed())));
    const Packing packing = expect_same(e);
    EXPECT_EQ(packing.mask, "attention_mask");
    EXPECT_EQ(packing.outputs[0].kind, PackedOutput::Kind::kPositions);
  }
}

TEST(PackTokens, EveryOperatorOfALayerHasRowsOnly) {
  Encoder e;
  e.output(e.layer(e.embed()));
  pack_tokens(e.g);
  for (const ir::Node& node : e.g.nodes)
    if (node.op == Op::matmul || node.op == Op::exp || node.op == Op::div) {
      const auto& shape = e.g.value(node.outputs[0]).type.shape;
      EXPECT_TRUE(shape[0] == Dim(1)) << ir::shape_str(shape);
      EXPECT_FALSE(has(ir::shape_str(shape), "length")) << ir::shape_str(shape);
    }
}

TEST(PackTokens, MasksOfOtherSpellings) {
  const auto with = [](DType dtype, const std::function<ValueId(Encoder&, ValueId)>& hide) {
    Encoder e(dtype);
    e.output(e.attend(e.embed(), [&](ValueId s) { return hide(e, s); }));
    expect_same(e);
  };
  with(DType::kI64, [](Encoder& e, ValueId s) {  // where(mask == 0, -Inf, s)
    const ValueId hidden = e.op(Op::equal, {e.spread_mask(), e.number(0, DType::kI64)});
    return e.op(Op::where, {hidden, e.number(-INFINITY), s});
  });
  with(DType::kBool, [](Encoder& e, ValueId s) {  // s + where(mask, 0, lowest), for every query
    const ValueId shape =
        e.op(Op::concat, {e.extent(0), e.ints({1}), e.extent(1), e.extent(1)}, {{"axis", int64_t{0}}});
    const ValueId wide = e.op(Op::expand, {e.spread_mask(), shape});
    return e.op(Op::add, {e.op(Op::where, {wide, e.number(0), e.number(-3.4e38)}), s});
  });
  with(DType::kF32, [](Encoder& e, ValueId s) {  // s * mask - 1e9 (1 - mask), scaled afterwards
    const ValueId scaled = e.op(Op::mul, {s, e.spread_mask()});
    return e.op(Op::div, {e.op(Op::add, {scaled, e.minus(1e9)}), e.number(4)});
  });
  with(DType::kI64, [](Encoder& e, ValueId s) {  // the mask read through a table of indices
    const ValueId rows = e.op(Op::iota, {e.extent(0)}, {{"axis", int64_t{0}}});
    const ValueId picked = e.op(Op::gather, {e.cast(e.mask, DType::kBool), rows}, {{"axis", int64_t{0}}});
    const ValueId seen = e.reshape(picked, {e.extent(0), e.ints({1, 1}), e.extent(1)});
    return e.op(Op::where, {seen, s, e.number(-INFINITY)});
  });
}

TEST(PackTokens, LaterKeysStayHidden) {
  Encoder e;
  e.output(e.attend(e.embed(), [&](ValueId s) {
    const ValueId row = e.reshape(e.op(Op::iota, {e.extent(1)}, {{"axis", int64_t{0}}}),
                                  {e.ints({1, 1}), e.extent(1), e.ints({1})}),
                  key = e.reshape(e.op(Op::iota, {e.extent(1)}, {{"axis", int64_t{0}}}),
                                  {e.ints({1, 1, 1}), e.extent(1)});
    const ValueId seen = e.op(Op::less_equal, {key, row});
    return e.op(Op::where, {seen, e.hide_all(s), e.number(-INFINITY)});
  }));
  expect_same(e);
}

TEST(PackTokens, PickedAndPooledOutputs) {
  Encoder e;
  const ValueId x = e.layer(e.embed());
  const ValueId first = e.op(Op::gather, {x, e.number(0, DType::kI64)}, {{"axis", int64_t{1}}});
  e.output(e.op(Op::tanh, {e.op(Op::matmul, {first, e.weight({kHidden, 4})})}));
  const ValueId spread = e.reshape(e.cast(e.mask, DType::kF32), {e.extent(0), e.extent(1), e.ints({1})});
  const ValueId count = e.op(Op::max, {e.reduce(spread, "sum", 1, 0), e.number(1e-9)});
  e.output(e.op(Op::div, {e.reduce(e.op(Op::mul, {x, spread}), "sum", 1, 0), count}));
  const ValueId hidden = e.op(Op::equal, {spread, e.number(0)});
  e.output(e.reduce(e.op(Op::where, {hidden, e.number(-1e9), x}), "max", 1, 0));
  e.output(e.op(Op::transpose, {x}, {{"perm", Ints{0, 2, 1}}}));
  const Packing packing = expect_same(e);
  EXPECT_EQ(packing.outputs[0].kind, PackedOutput::Kind::kPicked);
  EXPECT_EQ(packing.outputs[1].kind, PackedOutput::Kind::kExact);
  EXPECT_EQ(packing.outputs[2].kind, PackedOutput::Kind::kExact);
  EXPECT_EQ(packing.picks, Ints{0});
}

// Positions that are counted from the tokens: numbers of positions stay as the padded model has them.
TEST(PackTokens, CountedPositions) {
  Encoder e;
  const ValueId real = e.cast(e.op(Op::less, {e.number(1, DType::kI64), e.ids}), DType::kI64);
  const ValueId position = e.op(Op::scan_sum, {real}, {{"axis", int64_t{1}}, {"kind", std::string("sum")}});
  const ValueId tokens = e.op(Op::gather, {e.weight({kVocabulary, kHidden}), e.ids}, {{"axis", int64_t{0}}});
  const ValueId places = e.op(Op::gather, {e.weight({kLongest, kHidden}), position}, {{"axis", int64_t{0}}});
  e.output(e.layer(e.op(Op::add, {tokens, places})));
  expect_same(e);
}

TEST(PackTokens, RefusesWhatDependsOnPadding) {
  {
    Encoder e;
    e.output(e.reduce(e.layer(e.embed()), "mean", 1, 0));
    EXPECT_TRUE(has(refusal(e), "no mask hides the padded ones")) << refusal(e);
  }
  {
    Encoder e;
    e.output(e.softmax(e.layer(e.embed()), 0));
    EXPECT_TRUE(has(refusal(e), "mixes sequences")) << refusal(e);
  }
  {
    Encoder e;
    const ValueId x = e.op(Op::transpose, {e.layer(e.embed())}, {{"perm", Ints{0, 2, 1}}});
    e.output(
        e.op(Op::conv, {x, e.weight({4, kHidden, 3})},
             {{"strides", Ints{1}}, {"dilations", Ints{1}}, {"pads", Ints{1, 1}}, {"group", int64_t{1}}}));
    EXPECT_TRUE(has(refusal(e), "conv at node")) << refusal(e);
  }
  {
    Encoder e;
    e.output(e.attend(e.embed(), [](ValueId s) { return s; }));
    EXPECT_TRUE(has(refusal(e), "looks at every key")) << refusal(e);
  }
  {  // a mask that leaves hidden keys some weight
    Encoder e;
    e.output(e.attend(e.embed(), [&](ValueId s) { return e.op(Op::add, {s, e.minus(10)}); }));
    EXPECT_TRUE(has(refusal(e), "takes 10 from hidden keys")) << refusal(e);
  }
  {  // a mask of tokens, not of the mask
    Encoder e;
    e.output(e.attend(e.embed(), [&](ValueId s) {
      const ValueId seen = e.op(Op::less, {e.number(3, DType::kI64), e.ids});
      return e.op(Op::where,
                  {e.reshape(seen, {e.extent(0), e.ints({1, 1}), e.extent(1)}), s, e.number(-INFINITY)});
    }));
    EXPECT_NE(refusal(e), "");
  }
  {  // the scores themselves
    Encoder e;
    ValueId scores = ir::kNoValue;
    e.output(e.attend(e.embed(), [&](ValueId s) { return scores = e.hide_all(s); }));
    e.output(scores);
    EXPECT_TRUE(has(refusal(e), "are an output")) << refusal(e);
  }
  {  // sequences compared by their first positions
    Encoder e;
    const ValueId first =
        e.op(Op::gather, {e.layer(e.embed()), e.number(0, DType::kI64)}, {{"axis", int64_t{1}}});
    e.output(e.op(Op::matmul, {first, first}, {{"trans_b", int64_t{1}}}));
    EXPECT_TRUE(has(refusal(e), "one may be all padding")) << refusal(e);
  }
  {  // the next position
    Encoder e;
    e.output(e.op(Op::scan_sum, {e.layer(e.embed())}, {{"axis", int64_t{1}}, {"kind", std::string("sum")}}));
    EXPECT_TRUE(has(refusal(e), "mixes positions")) << refusal(e);
  }
}

TEST(PackTokens, SaysWhichMasksThereAre) {
  Encoder e;
  e.output(e.layer(e.embed()));
  e.g.input_names[1] = "m";
  EXPECT_TRUE(has(refusal(e), "inputs of that shape: ids, m")) << refusal(e);
  Graph named = e.g;
  EXPECT_EQ(pack_tokens(named, "m").mask, "m");
  EXPECT_EQ(named.metadata.at(ir::kPackedMask), "m");
  try {
    pack_tokens(e.g, "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace thrice::transform
