// Catches: sequences that see each other's tokens, tokens and states that are never written, a gate or a bias
// read for the wrong head or channel, lengths around a chunk. The tactic chunks runs on a card of sm_90a;
// elsewhere its text is kept for the step cuda_texts.
#include "family/delta_rule/delta_rule.h"

#include "cross/family_runner.h"

namespace thrice::testing {
namespace {

using ir::Dim;
using ir::InputKind;
using ir::Op;
using ir::Tensor;
using ir::ValueId;

struct Heads {
  Dim batch, tokens, heads, sequences;
  int64_t depth, width, gates;
};

ir::Workload workload(const Heads& h, DType dtype, bool first, bool packed) {
  Builder b;
  const auto x = [&](int64_t width) { return b.input(dtype, {h.batch, h.tokens, h.heads, Dim(width)}); };
  std::vector<ValueId> operands{x(h.depth), x(h.depth), x(h.width), x(h.gates)};
  operands.push_back(b.input(dtype, {h.batch, h.tokens, h.heads}));
  operands.push_back(b.f32({h.heads}));
  operands.push_back(b.f32({h.heads, Dim(h.gates)}));
  operands.push_back(first ? b.f32({h.sequences, h.heads, Dim(h.depth), Dim(h.width)}) : ir::kNoValue);
  operands.push_back(packed ? b.input(DType::kI32, {h.sequences + 1}) : ir::kNoValue);
  for (const ValueId y : b.ops(Op::scan_sum, operands, {{"kind", std::string("delta_rule")}}, 2)) b.output(y);
  return b.workload();
}

FamilyRunner& runner() { return FamilyRunner::instance(); }

TEST(DeltaRule, BatchesAndGates) {
  THRICE_REQUIRE_OPENCL();
  const Dim t = Dim::symbol("t");
  for (const int64_t gates : {int64_t{1}, int64_t{5}})
    runner().check_all(workload({Dim(2), t, Dim(3), Dim(2), 5, 7, gates}, DType::kF32, gates == 1, false),
                       family::delta_rule_family(), {{{"s0", 20}}, {{"s0", 1}}, {{"s0", 0}}});
}

TEST(DeltaRule, PackedLengths) {
  THRICE_REQUIRE_OPENCL();
  const Dim t = Dim::symbol("t"), n = Dim::symbol("n");
  runner().check_all(workload({Dim(1), t, Dim(2), n, 8, 4, 8}, DType::kF32, true, true),
                     family::delta_rule_family(),
                     {{{"s0", 40}, {"s1", 6}, {"s2", 7}},
                      {{"s0", 3}, {"s1", 9}, {"s2", 10}},
                      {{"s0", 1}, {"s1", 1}, {"s2", 2}}});
}

// Strong and weak gates by the bias: a is near exp(-5), near 1, or both among the channels of a head.
std::vector<Tensor> inputs_of(const ir::Workload& w, const std::vector<int64_t>& offsets, double bias,
                              uint64_t seed) {
  const ir::Bindings extents{{"s0", offsets.back()},
                             {"s1", static_cast<int64_t>(offsets.size()) - 1},
                             {"s2", static_cast<int64_t>(offsets.size())}};
  std::vector<Tensor> inputs = ir::make_inputs(w.graph, extents, InputKind::kNormal, seed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& x = inputs[i];
    x.mutable_data();
    if (x.shape().size() == 2)
      for (int64_t e = 0; e < x.size(); ++e) x.set(e, bias == 0 ? 9 * x.as_double(e) : x.as_double(e) + bias);
    if (x.dtype() == DType::kI32)
      for (int64_t e = 0; e < x.size(); ++e) x.set_int(e, offsets[static_cast<size_t>(e)]);
  }
  return inputs;
}

TEST(DeltaRule, HeadsOf128) {
  THRICE_REQUIRE_OPENCL();
  const Dim t = Dim::symbol("t"), n = Dim::symbol("n");
  const ir::Workload w = workload({Dim(1), t, Dim(2), n, 128, 128, 128}, DType::kBF16, true, true);
  const auto& f = family::delta_rule_family();
  runner().keep_cuda(w, f, ir::facts_at(w.graph, {{"s0", 64}, {"s1", 2}, {"s2", 3}}));
  const auto facts = ir::facts_at(w.graph, {{"s0", 64}, {"s1", 2}, {"s2", 3}});
  std::vector<artifact::Schedule> schedules{f.default_schedule(w, facts, runner().spec())};
  if (!f.illegal(w, {"delta_rule", "chunks", {{"columns", 128}, {"blocks", 132}}}, runner().spec()))
    for (const int64_t columns : {64, 128})
      for (const int64_t blocks : {3, 132})
        schedules.push_back({"delta_rule", "chunks", {{"columns", columns}, {"blocks", blocks}}});
  uint64_t seed = 1;
  for (const auto& s : schedules)
    for (const double bias : {0.0, 9.0, -9.0})
      for (const auto& offsets :
           std::vector<std::vector<int64_t>>{{0, 1}, {0, 16}, {0, 0, 17, 17, 49}, {0, 1, 2, 35, 66}, {0, 0}})
        runner().check(w, f, s, inputs_of(w, offsets, bias, seed++), 4.4e-3);
}

TEST(DeltaRule, SaysWhereChunksCanRun) {
  const auto& f = family::delta_rule_family();
  const artifact::Schedule chunks{"delta_rule", "chunks", {{"columns", 128}, {"blocks", 132}}};
  const auto why = [&](const ir::Workload& w, const char* architecture) {
    return f.illegal(w, chunks, FamilyRunner::gpu_spec(architecture)).value_or("");
  };
  const Heads wide{Dim(1), Dim(64), Dim(2), Dim(1), 128, 128, 128};
  Heads narrow = wide, one_gate = wide;
  narrow.depth = narrow.gates = 64;
  one_gate.gates = 1;
  EXPECT_EQ(why(workload(wide, DType::kBF16, true, false), "sm_90a"), "");
  EXPECT_NE(why(workload(wide, DType::kBF16, true, false), "sm_80"), "");
  EXPECT_NE(why(workload(wide, DType::kF32, true, false), "sm_90a"), "");
  EXPECT_NE(why(workload(narrow, DType::kBF16, true, false), "sm_90a"), "");
  EXPECT_NE(why(workload(one_gate, DType::kBF16, true, false), "sm_90a"), "");
}

}  // namespace
}  // namespace thrice::testing
