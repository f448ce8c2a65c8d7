// Catches wrong order, ties, lost or doubled updates, and lines that run into each other, in scan, top_k and
// scatter.
#include "cross/family_runner.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

FamilyRunner& runner() { return FamilyRunner::instance(); }
const family::Family& of(const char* name) { return *family::find_family(name); }
Dim sym(const char* name) { return Dim::symbol(name); }

TEST(Scan, SumsAndProducts) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t exclusive : {0, 1})
    for (const int64_t reverse : {0, 1}) {
      Builder b;
      const ValueId x = b.f32({3, sym("n"), 5});
      b.output(b.op(Op::scan_sum, {b.op(Op::neg, {x})},
                    {{"axis", int64_t{1}}, {"exclusive", exclusive}, {"reverse", reverse}}));
      runner().check_all(b.workload(), of("scan"), {{{"s0", 9}}, {{"s0", 1}}, {{"s0", 0}}},
                         InputKind::kSmallIntegers);
    }
}

TEST(TopK, LargestSmallestTiesAndNaN) {
  THRICE_REQUIRE_OPENCL();
  for (const int64_t largest : {0, 1})
    for (const InputKind kind : {InputKind::kSmallIntegers, InputKind::kEdgeValues}) {
      Builder b;
      const auto y = b.ops(Op::top_k, {b.f32({4, sym("n"), 3}), b.ints({5})},
                           {{"axis", int64_t{1}}, {"largest", largest}, {"sorted", int64_t{1}}}, 2);
      if (kind == InputKind::kSmallIntegers) b.output(y[0]);
      b.output(y[1]);
      runner().check_all(b.workload(), of("top_k"), {{{"s0", 40}}, {{"s0", 5}}}, kind);
    }
}

TEST(Scatter, ElementsWithEveryReduction) {
  THRICE_REQUIRE_OPENCL();
  for (const char* reduction : {"none", "add", "mul", "min", "max"}) {
    Builder b;
    const ValueId x = b.f32({6, sym("w")});
    const ValueId i = b.constant(Tensor::of<int64_t>(DType::kI64, {3, 2}, {0, -1, 0, 5, 2, -1}));
    b.output(b.op(Op::scatter_elements, {x, i, b.f32({3, 2})},
                  {{"axis", int64_t{0}}, {"reduction", std::string(reduction)}}));
    const auto w = b.workload();
    ASSERT_FALSE(of("scatter").match(w).has_value());
    const auto s = of("scatter").default_schedule(w, {}, runner().spec());
    for (const int64_t width : {2, 7}) {
      const auto make = [&](std::vector<int64_t> shape, uint64_t seed) {
        return ir::make_input(DType::kF32, shape, InputKind::kSmallIntegers, seed);
      };
      runner().check(w, of("scatter"), s,
                     {make({6, width}, 1), Tensor::of<int64_t>(DType::kI64, {3, 2}, {0, -1, 0, 5, 2, -1}),
                      make({3, 2}, 2)});
    }
    runner().keep_cuda(w, of("scatter"), ir::facts_at(w.graph, {{"s0", 7}}));
  }
}

TEST(Scatter, TuplesOfFullAndPartialDepth) {
  THRICE_REQUIRE_OPENCL();
  for (const char* reduction : {"none", "add", "max"})
    for (const int64_t depth : {1, 2}) {
      Builder b;
      const ValueId x = b.f32({4, 5});
      const ValueId i = b.input(DType::kI64, {3, depth});
      const ir::Shape updates = depth == 1 ? ir::Shape{3, 5} : ir::Shape{3};
      b.output(b.op(Op::scatter_nd, {x, i, b.f32(updates)}, {{"reduction", std::string(reduction)}}));
      const auto w = b.workload();
      ASSERT_FALSE(of("scatter").match(w).has_value());
      const auto make = [&](std::vector<int64_t> shape, uint64_t seed) {
        return ir::make_input(DType::kF32, shape, InputKind::kSmallIntegers, seed);
      };
      const std::vector<int64_t> where =
          depth == 1 ? std::vector<int64_t>{3, -1, 0} : std::vector<int64_t>{3, -1, 0, 2, -1, 4};
      runner().check(w, of("scatter"), of("scatter").default_schedule(w, {}, runner().spec()),
                     {make({4, 5}, 1), Tensor::of<int64_t>(DType::kI64, {3, depth}, where),
                      make(ir::static_shape(updates), 2)});
    }
}

}  // namespace
}  // namespace thrice::testing
