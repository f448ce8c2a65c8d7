// Catches: a wrong extent, dtype or known value of any operator group, symbolic and concrete rules that
// differ, and illegal models that pass.
#include "ir/infer.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "ir/check.h"
#include "ir/region.h"
#include "unit/ir/graph_maker.h"

namespace thrice::ir {
namespace {

const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
using Ints = std::vector<int64_t>;

// Infers one node on inputs of the given shapes and constants; returns the first result's shape.
std::string shape_after(Op op, const std::vector<Shape>& shapes, Attributes attrs = {},
                        std::vector<Tensor> extra = {}, DType dtype = DType::kF32) {
  GraphMaker g;
  std::vector<ValueId> inputs;
  for (const Shape& s : shapes) inputs.push_back(g.input(s, dtype));
  for (Tensor& t : extra) inputs.push_back(g.constant(std::move(t)));
  const ValueId y = g.add(op, inputs, std::move(attrs));
  g.infer();
  return g.shape(y);
}

TEST(Infer, Broadcasting) {
  EXPECT_EQ(shape_after(Op::add, {{n, 1, 4}, {3, 1}}), "[n, 3, 4]");
  EXPECT_EQ(shape_after(Op::add, {{1, 4}, {n, 4}}), "[n, 4]");
  EXPECT_EQ(shape_after(Op::add, {{0, 4}, {1, 4}}), "[0, 4]");
  EXPECT_EQ(shape_after(Op::add, {{n}, {m}}), "[broadcast(m,n)]");
  EXPECT_EQ(shape_after(Op::add, {{n}, {7}}), "[7]");
  EXPECT_THROW(shape_after(Op::add, {{2}, {3}}), Error);
}

TEST(Infer, Types) {
  GraphMaker g;
  const ValueId x = g.input({n}), i = g.input({n}, DType::kI64);
  const ValueId less = g.add(Op::less, {x, x});
  const ValueId cast = g.add(Op::cast, {i}, {{"to", static_cast<int64_t>(DType::kF16)}});
  const ValueId chosen = g.add(Op::where, {less, x, x});
  const ValueId power = g.add(Op::pow, {x, i});
  g.infer();
  EXPECT_EQ(g.graph.value(less).type.dtype, DType::kBool);
  EXPECT_EQ(g.graph.value(cast).type.dtype, DType::kF16);
  EXPECT_EQ(g.graph.value(chosen).type.dtype, DType::kF32);
  EXPECT_EQ(g.graph.value(power).type.dtype, DType::kF32);
  const auto refused = [](Op op, std::vector<DType> types) {
    GraphMaker bad;
    std::vector<ValueId> inputs;
    for (DType t : types) inputs.push_back(bad.input({2}, t));
    bad.add(op, inputs);
    EXPECT_THROW(bad.infer(), Error) << op_name(op);
  };
  refused(Op::add, {DType::kF32, DType::kI64});
  refused(Op::add, {DType::kBool, DType::kBool});
  refused(Op::sqrt, {DType::kI32});
  refused(Op::logical_not, {DType::kF32});
  refused(Op::bitwise_and, {DType::kF32, DType::kF32});
  refused(Op::where, {DType::kF32, DType::kF32, DType::kF32});
  refused(Op::add, {DType::kF32});
}

TEST(Infer, Reshape) {
  EXPECT_EQ(shape_after(Op::reshape, {{n, 12, 64}}, {}, {Tensor::ints({0, -1})}), "[n, 768]");
  EXPECT_EQ(shape_after(Op::reshape, {{n, m, 64}}, {}, {Tensor::ints({-1, 64})}), "[m*n, 64]");
  EXPECT_EQ(shape_after(Op::reshape, {{n, 6}}, {}, {Tensor::ints({4, -1})}), "[4, n + floordiv(n,2)]");
  EXPECT_EQ(shape_after(Op::reshape, {{0, 4}}, {}, {Tensor::ints({0, -1})}), "[0, 4]");
  EXPECT_EQ(shape_after(Op::reshape, {{0, 4}}, {{"allowzero", int64_t{1}}}, {Tensor::ints({3, 0})}),
            "[3, 0]");
  EXPECT_EQ(shape_after(Op::reshape, {{1}}, {}, {Tensor::ints({})}), "[]");
  EXPECT_THROW(shape_after(Op::reshape, {{6}}, {}, {Tensor::ints({4, -1})}), Error);
  EXPECT_THROW(shape_after(Op::reshape, {{6}}, {}, {Tensor::ints({5})}), Error);
  EXPECT_THROW(shape_after(Op::reshape, {{6}}, {}, {Tensor::ints({-1, -1})}), Error);
  EXPECT_THROW(shape_after(Op::reshape, {{6}}, {}, {Tensor::ints({6, 0})}), Error);
}

// The shape arithmetic of a typical attention block stays symbolic.
TEST(Infer, ShapeArithmetic) {
  GraphMaker g;
  const ValueId x = g.input({n, m, 768});
  const ValueId shape = g.add(Op::shape, {x});
  const ValueId batch =
      g.add(Op::gather, {shape, g.constant(Tensor::scalar(DType::kI64, 0))}, {{"axis", int64_t{0}}});
  const ValueId length =
      g.add(Op::slice, {shape, g.ints({1}), g.ints({2}), g.ints({1})}, {{"axes", Ints{0}}});
  const ValueId batch1 = g.add(Op::reshape, {batch, g.ints({1})});
  const ValueId heads = g.add(Op::div, {g.ints({768}), g.ints({64})});
  const ValueId wanted = g.add(Op::concat, {batch1, length, heads, g.ints({64})}, {{"axis", int64_t{0}}});
  const ValueId split = g.add(Op::reshape, {x, wanted});
  const ValueId turned = g.add(Op::transpose, {split}, {{"perm", Ints{0, 2, 1, 3}}});
  const ValueId count = g.add(Op::reduce, {shape},
                              {{"kind", std::string("prod")}, {"axes", Ints{0}}, {"keepdims", int64_t{0}}});
  const ValueId half = g.add(Op::div, {length, g.ints({2})});
  // Expand's idiom: where(shape == -1, ones, shape).
  const ValueId asked = g.add(Op::concat, {batch1, g.ints({-1})}, {{"axis", int64_t{0}}});
  const ValueId is_free = g.add(Op::equal, {asked, g.ints({-1, -1})});
  const ValueId filled = g.add(Op::where, {is_free, g.ints({1, 1}), asked});
  g.infer();
  EXPECT_EQ(g.known(shape), "[n, m, 768]");
  EXPECT_EQ(g.known(wanted), "[n, m, 12, 64]");
  EXPECT_EQ(g.shape(turned), "[n, 12, m, 64]");
  EXPECT_EQ(g.known(count), "[768*m*n]");
  EXPECT_EQ(g.shape(count), "[]");
  EXPECT_EQ(g.known(half), "[floordiv(m,2)]");
  EXPECT_EQ(g.known(is_free), "[0, 1]");
  EXPECT_EQ(g.known(filled), "[n, 1]");
}

// "(m - 9) / 4": exporters know that m >= 9 and we do not, and integer division goes towards zero.
TEST(Infer, DivisionOfWhatMayBeNegative) {
  GraphMaker g;
  const ValueId shape = g.add(Op::shape, {g.input({n, m})});
  const ValueId length =
      g.add(Op::slice, {shape, g.ints({1}), g.ints({2}), g.ints({1})}, {{"axes", Ints{0}}});
  const ValueId quarter = g.add(Op::div, {g.add(Op::sub, {length, g.ints({9})}), g.ints({4})});
  const ValueId by_negative = g.add(Op::div, {g.add(Op::sub, {length, g.ints({9})}), g.ints({-4})});
  g.infer();
  const auto& known = g.graph.value(quarter).known;
  ASSERT_TRUE(known);
  for (int64_t value = 0; value < 20; ++value)
    EXPECT_EQ(known->at(0).evaluate({{"m", value}}), (value - 9) / 4) << value;
  EXPECT_EQ(g.known(by_negative), "unknown");
}

TEST(Infer, KnownNeverGuesses) {
  GraphMaker g;
  const ValueId x = g.input({n, m});
  const ValueId shape = g.add(Op::shape, {x});
  const ValueId same =
      g.add(Op::equal, {shape, g.add(Op::slice, {shape, g.ints({-1}), g.ints({INT64_MIN}), g.ints({-1})},
                                     {{"axes", Ints{0}}})});
  const ValueId ratio = g.add(
      Op::div,
      {g.ints({12}), g.add(Op::slice, {shape, g.ints({0}), g.ints({1}), g.ints({1})}, {{"axes", Ints{0}}})});
  const ValueId big = g.add(Op::mul, {g.ints({INT64_MAX}), g.ints({2})});
  g.infer();
  EXPECT_EQ(g.known(same), "unknown");   // n == m for some bindings
  EXPECT_EQ(g.known(ratio), "unknown");  // n may be 0, where thrice's div gives 0
  EXPECT_EQ(g.known(big), "unknown");    // wraps: data, no shape
}

TEST(Infer, SliceSymbolicAgreesWithConcrete) {
  const int64_t points[] = {INT64_MIN, -7, -3, -2, -1, 0, 1, 2, 5, 9, INT64_MAX};
  int64_t compared = 0;
  for (int64_t step : {-3, -2, -1, 1, 2, 3})
    for (int64_t start : points)
      for (int64_t end : points) {
        GraphMaker g;
        const ValueId x = g.input({n});
        const ValueId y =
            g.add(Op::slice, {x, g.ints({start}), g.ints({end}), g.ints({step})}, {{"axes", Ints{0}}});
        g.infer();
        for (int64_t extent = 0; extent <= 8; ++extent) {
          const int64_t expected = resolve_slice(extent, start, end, step).length;
          EXPECT_EQ(g.graph.value(y).type.shape[0].evaluate({{"n", extent}}), expected)
              << "x[" << start << ":" << end << ":" << step << "] of " << extent << ": " << g.shape(y);
          ++compared;
        }
      }
  EXPECT_EQ(compared, 6 * 11 * 11 * 9);
}

// ONNX's clamping, written the long way round: walk from the clamped start.
TEST(Infer, ResolveSliceAgainstWalking) {
  for (int64_t extent = 0; extent <= 5; ++extent)
    for (int64_t start = -8; start <= 8; ++start)
      for (int64_t end = -8; end <= 8; ++end)
        for (int64_t step : {-2, -1, 1, 3}) {
          int64_t s = start < 0 ? start + extent : start, e = end < 0 ? end + extent : end;
          s = std::clamp<int64_t>(s, 0, std::max<int64_t>(step > 0 ? extent : extent - 1, 0));
          e = step > 0 ? std::clamp<int64_t>(e, 0, extent)
                       : std::clamp<int64_t>(e, -1, std::max<int64_t>(extent - 1, -1));
          int64_t walked = 0;
          for (int64_t i = s; (step > 0 ? i < e : i > e) && i < extent; i += step) ++walked;
          const SliceRange r = resolve_slice(extent, start, end, step);
          ASSERT_EQ(r.length, walked) << extent << ": " << start << ":" << end << ":" << step;
          if (walked) {
            ASSERT_EQ(r.start, s);
          }
        }
}

TEST(Infer, Views) {
  EXPECT_EQ(shape_after(Op::expand, {{1, 4}}, {}, {Tensor::ints({3, 1, 1})}), "[3, 1, 4]");
  EXPECT_EQ(shape_after(Op::concat, {{n, 2}, {n, 3}}, {{"axis", int64_t{1}}}), "[n, 5]");
  EXPECT_EQ(shape_after(Op::concat, {{n, 2}, {m, 2}}, {{"axis", int64_t{0}}}), "[m + n, 2]");
  EXPECT_THROW(shape_after(Op::concat, {{2, 2}, {2, 3}}, {{"axis", int64_t{0}}}), Error);
  EXPECT_EQ(shape_after(Op::pad, {{n, 4}}, {{"axes", Ints{0, 1}}}, {Tensor::ints({1, 0, 2, -1})}),
            "[n + 3, 3]");
  EXPECT_EQ(shape_after(Op::tile, {{n, 4}}, {}, {Tensor::ints({2, 3})}), "[2*n, 12]");
  EXPECT_EQ(shape_after(Op::gather, {{7, n, 3}}, {{"axis", int64_t{1}}}, {Tensor(DType::kI64, {2, 5})}),
            "[7, 2, 5, 3]");
  EXPECT_EQ(
      shape_after(Op::gather_nd, {{n, 4, 5}}, {{"batch_dims", int64_t{1}}}, {Tensor(DType::kI64, {6, 2, 1})}),
      "[6, 2, 5]");
  EXPECT_EQ(shape_after(Op::iota, {}, {{"axis", int64_t{1}}}, {Tensor::ints({2, 3})}), "[2, 3]");
  EXPECT_THROW(shape_after(Op::gather, {{7}}, {{"axis", int64_t{1}}}, {Tensor(DType::kI64, {2})}), Error);
  EXPECT_THROW(shape_after(Op::transpose, {{7, 2}}, {{"perm", Ints{0, 0}}}), Error);
  EXPECT_THROW(shape_after(Op::pad, {{2}}, {{"axes", Ints{0}}}, {Tensor::ints({-2, -1})}), Error);
}

TEST(Infer, Heavy) {
  EXPECT_EQ(shape_after(Op::matmul, {{n, 1, 4, 5}, {3, 5, 6}}), "[n, 3, 4, 6]");
  EXPECT_EQ(shape_after(Op::matmul, {{4, 5}, {6, 5}}, {{"trans_b", int64_t{1}}}), "[4, 6]");
  EXPECT_EQ(shape_after(Op::matmul, {{5, 4}, {5, 6}}, {{"trans_a", int64_t{1}}}), "[4, 6]");
  EXPECT_THROW(shape_after(Op::matmul, {{4, 5}, {6, 7}}), Error);
  EXPECT_EQ(shape_after(Op::reduce, {{n, 3, 4}}, {{"axes", Ints{0, 2}}, {"keepdims", int64_t{0}}}), "[3]");
  EXPECT_EQ(shape_after(Op::reduce, {{n, 3, 4}}, {{"axes", Ints{1}}}), "[n, 1, 4]");
  EXPECT_EQ(shape_after(Op::arg_reduce, {{n, 3}}, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}), "[n]");
  EXPECT_EQ(shape_after(Op::top_k, {{n, 9}}, {{"axis", int64_t{1}}}, {Tensor::ints({4})}), "[n, 4]");
  EXPECT_THROW(shape_after(Op::top_k, {{n, 3}}, {{"axis", int64_t{1}}}, {Tensor::ints({4})}), Error);
  EXPECT_EQ(shape_after(Op::grid_sample, {{n, 3, 8, 8}, {n, 5, 6, 2}}), "[n, 3, 5, 6]");
}

TEST(Infer, Windows) {
  const Attributes stride2{{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
  EXPECT_EQ(shape_after(Op::conv, {{n, 3, 48, m}, {16, 3, 3, 3}}, stride2), "[n, 16, 24, floordiv(m + 1,2)]");
  EXPECT_EQ(shape_after(Op::conv, {{1, 4, 7}, {8, 2, 3}}, {{"group", int64_t{2}}, {"dilations", Ints{2}}}),
            "[1, 8, 3]");
  EXPECT_EQ(shape_after(Op::conv, {{1, 1, 7}, {1, 1, 4}},
                        {{"auto_pad", std::string("same_upper")}, {"strides", Ints{3}}}),
            "[1, 1, 3]");
  EXPECT_THROW(shape_after(Op::conv, {{1, 3, 7, 7}, {8, 2, 3, 3}}), Error);
  EXPECT_THROW(shape_after(Op::conv, {{1, 3, 2, 2}, {8, 3, 5, 5}}), Error);
  EXPECT_EQ(shape_after(Op::conv_transpose, {{1, 4, 5}, {4, 2, 3}},
                        {{"strides", Ints{2}}, {"output_padding", Ints{1}}, {"pads", Ints{1, 1}}}),
            "[1, 2, 10]");
  // 5 elements, windows of 2, step 2: floor gives 2, ceil 3.
  EXPECT_EQ(shape_after(Op::pool, {{1, 1, 5}}, {{"kernel", Ints{2}}, {"strides", Ints{2}}}), "[1, 1, 2]");
  EXPECT_EQ(shape_after(Op::pool, {{1, 1, 5}},
                        {{"kernel", Ints{2}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}}),
            "[1, 1, 3]");
  // 2 elements padded by 1 on both sides, windows of 1 every 3: the second would start at the trailing
  // padding.
  EXPECT_EQ(shape_after(
                Op::pool, {{1, 1, 2}},
                {{"kernel", Ints{1}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", int64_t{1}}}),
            "[1, 1, 1]");
}

TEST(Infer, PadsMakeTheSameCount) {
  for (int64_t extent = 1; extent <= 12; ++extent)
    for (int64_t kernel = 1; kernel <= 4; ++kernel)
      for (int64_t stride = 1; stride <= 3; ++stride)
        for (const char* mode : {"same_upper", "same_lower"}) {
          const auto [begin, end] = resolve_pads(mode, extent, kernel, stride, 1, 9, 9);
          // Fewer pads than the windows need never happen; gaps between windows need none.
          EXPECT_GE((extent + begin + end - kernel) / stride + 1, (extent + stride - 1) / stride);
          EXPECT_LE(std::abs(begin - end), 1);
          if (begin != end) {
            EXPECT_EQ(begin < end, std::string(mode) == "same_upper");
          }
        }
  EXPECT_EQ(resolve_pads("notset", 5, 3, 1, 1, 2, 1), (std::pair<int64_t, int64_t>{2, 1}));
  EXPECT_EQ(resolve_pads("valid", 5, 3, 1, 1, 2, 1), (std::pair<int64_t, int64_t>{0, 0}));
}

TEST(Infer, Resize) {
  const auto resized = [](const Shape& x, Tensor scales, Tensor sizes, Attributes attrs) {
    GraphMaker g;
    std::vector<ValueId> inputs{g.input(x), kNoValue};
    inputs.push_back(scales.size() ? g.constant(scales) : kNoValue);
    inputs.push_back(sizes.size() ? g.constant(sizes) : kNoValue);
    const ValueId y = g.add(Op::resize, inputs, std::move(attrs));
    g.infer();
    return g.shape(y);
  };
  const auto floats = [](std::vector<double> v) {
    return Tensor::of(DType::kF32, {static_cast<int64_t>(v.size())}, v);
  };
  EXPECT_EQ(resized({1, 3, n, m}, floats({1, 1, 2, 0.5}), Tensor(), {}), "[1, 3, 2*n, floordiv(m,2)]");
  EXPECT_EQ(resized({1, 3, 10}, floats({1, 1, 0.7}), Tensor(), {}), "[1, 3, 7]");
  EXPECT_EQ(resized({1, 3, n, m}, Tensor(), Tensor::ints({8, 9}), {{"axes", Ints{2, 3}}}), "[1, 3, 8, 9]");
  EXPECT_EQ(resized({1, 1, 10, 20}, Tensor(), Tensor::ints({5, 5}),
                    {{"axes", Ints{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}}),
            "[1, 1, 3, 5]");
  EXPECT_THROW(resized({1, 1, 10}, floats({1, 1, 1e31}), Tensor(), {}), Error);  // no int64
  EXPECT_THROW(resized({1, 0, 10}, Tensor(), Tensor::ints({5, 5}),
                       {{"axes", Ints{1, 2}}, {"keep_aspect_ratio_policy", std::string("not_smaller")}}),
               Error);
}

TEST(Infer, DataDependentExtentsAreFreshAndStable) {
  GraphMaker g;
  const ValueId x = g.input({n, 4});
  const ValueId a = g.add(Op::nonzero, {x});
  const ValueId b = g.add(Op::unique, {x}, {}, 4);
  const ValueId shape = g.add(Op::shape, {a}, {{"start", int64_t{1}}});
  const ValueId made = g.add(Op::expand, {g.constant(Tensor::scalar(DType::kF32, 1)), shape});
  const ValueId input = g.input({3}, DType::kI64);
  const ValueId unknown = g.add(Op::reshape, {x, input});
  g.infer();
  EXPECT_EQ(g.shape(a), "[2, nonzero_0.0.1]");
  EXPECT_EQ(g.shape(made), "[nonzero_0.0.1]");
  EXPECT_EQ(g.shape(b + 2), "[4*n]");
  EXPECT_EQ(g.graph.value(b).type.shape, g.graph.value(b + 3).type.shape);
  EXPECT_EQ(g.graph.value(unknown).type.shape.size(), 3u);
  const std::string before = print(g.graph);
  g.infer();
  EXPECT_EQ(print(g.graph), before);
  const std::vector<Fact> inputs{{{DType::kF32, {2, 4}}, nullptr, std::nullopt},
                                 {{DType::kI64, {3}}, nullptr, std::nullopt}};
  EXPECT_THROW(ir::bind(g.graph, inputs), Error);
}

TEST(Infer, LoopCarriedExtentThatGrows) {
  // body: carried -> concat(carried, carried); also a scan output of constant shape.
  GraphMaker body;
  body.input({}, DType::kI64);
  const ValueId go = body.input({}, DType::kBool);
  const ValueId state = body.input({2, 4});
  const ValueId captured = body.input({4});
  const ValueId grown = body.add(Op::concat, {state, state}, {{"axis", int64_t{0}}});
  const ValueId scanned = body.add(Op::neg, {captured});
  body.output(go);
  body.output(grown);
  body.output(scanned);
  GraphMaker g;
  const ValueId start = g.input({2, 4}), outer = g.input({n});
  const ValueId trips = g.constant(Tensor::scalar(DType::kI64, 5));
  const ValueId y = g.add(Op::loop, {trips, kNoValue, start, outer},
                          {{"num_carried", int64_t{1}}, {"num_scan_outputs", int64_t{1}}}, 2,
                          {std::make_shared<const Graph>(body.graph)});
  g.output(y);
  g.infer();
  EXPECT_EQ(g.shape(y), "[loop_0.0.0, 4]");
  EXPECT_EQ(g.shape(y + 1), "[5, n]");
  verify(g.graph);
  const Graph& inner = *g.graph.nodes[0].bodies[0];
  EXPECT_EQ(shape_str(inner.value(state).type.shape), "[loop_0.carried0.0, 4]");
}

TEST(Infer, BranchesThatDisagree) {
  const auto branch = [](int64_t rows) {
    GraphMaker b;
    const ValueId x = b.input({n, 3});
    b.output(
        b.add(Op::expand, {b.add(Op::slice, {x, b.ints({0}), b.ints({1}), b.ints({1})}, {{"axes", Ints{0}}}),
                           b.ints({rows, 3})}));
    return std::make_shared<const Graph>(b.graph);
  };
  GraphMaker g;
  const ValueId condition = g.input({}, DType::kBool), x = g.input({m, 3});
  const ValueId y = g.add(Op::if_, {condition, x}, {}, 1, {branch(4), branch(5)});
  const ValueId always =
      g.add(Op::if_, {g.constant(Tensor::scalar(DType::kBool, 0)), x}, {}, 1, {branch(4), branch(5)});
  g.output(y);
  g.infer();
  EXPECT_EQ(g.shape(y), "[if_0.0.0, 3]");
  EXPECT_EQ(g.shape(always), "[5, 3]");
}

TEST(Infer, ScanStacksAlongItsAxis) {
  GraphMaker body;
  const ValueId state = body.input({4}), row = body.input({4});
  const ValueId sum = body.add(Op::add, {state, row});
  body.output(sum);
  body.output(sum);
  GraphMaker g;
  const ValueId start = g.input({4}), rows = g.input({n, 4});
  const ValueId y =
      g.add(Op::scan, {start, rows},
            {{"num_carried", int64_t{1}}, {"num_scanned", int64_t{1}}, {"scan_output_axes", Ints{1}}}, 2,
            {std::make_shared<const Graph>(body.graph)});
  g.output(y);
  g.infer();
  EXPECT_EQ(g.shape(y), "[4]");
  EXPECT_EQ(g.shape(y + 1), "[4, n]");
}

TEST(Infer, MessagesNameTheModelsNode) {
  GraphMaker g;
  const ValueId a = g.input({2}), b = g.input({3});
  g.graph.origins.push_back({"Add", "layer7/add", 13});
  g.add(Op::add, {a, b});
  g.graph.nodes[0].origin = 0;
  try {
    g.infer();
    FAIL() << "shapes [2] and [3] were added";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidModel);
    EXPECT_NE(std::string(error.what()).find("layer7/add"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace thrice::ir
