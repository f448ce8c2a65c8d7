// Runs a tactic that calls a vendor's library with the host in the library's place: descriptions of calls and
// the kernels around them are tested without a card.
#pragma once
#include "cross/heavy/schedules.h"

namespace thrice::testing {

// What a test knows of a call: where its result's type and workspace stand, and how to compute it on buffers
// that are tensors.
struct PlayedCall {
  DType result;
  int workspace;
  std::function<void(const std::vector<int32_t>& extents, std::vector<ir::Tensor>& buffers)> play;
};

inline target::DeviceSpec library_card() { return FamilyRunner::gpu_spec("sm_90a"); }

// Compares with float64; `kernels` of the program, the call first; `algorithm_at`: which integer says the
// algorithm.
inline void check_played_call(Builder& builder, const family::Family& f, const std::string& tactic,
                              const std::function<PlayedCall(const std::string& symbol)>& parse,
                              size_t algorithm_at, const std::vector<ir::Bindings>& bindings, size_t kernels,
                              ir::InputKind kind = ir::InputKind::kSmallIntegers, double limit = 0) {
  auto& runner = FamilyRunner::instance();
  const ir::Workload w = builder.workload();
  SCOPED_TRACE(ir::print(w.graph));
  const artifact::Schedule s{std::string(f.name()), tactic, {{"algorithm", 3}, {"workspace_mib", 32}}};
  ASSERT_EQ(f.illegal(w, s, library_card()).value_or(""), "");
  const family::ProgramText text = f.emit(w, s, library_card());
  ASSERT_EQ(text.kernels.size(), kernels) << text.text;
  const PlayedCall call = parse(text.kernels[0]);
  for (const auto& b : bindings) {
    SCOPED_TRACE(FamilyRunner::bindings_text(b));
    const std::vector<ir::Tensor> inputs = ir::make_inputs(w.graph, b, kind, 7);
    const auto facts = FamilyRunner::facts_of(inputs);
    const artifact::LaunchPlan plan = f.launch(w, s, facts);
    ASSERT_EQ(plan.launches.size(), kernels);
    ASSERT_GT(plan.launches[0].extents.size(), algorithm_at);
    EXPECT_EQ(plan.launches[0].extents[algorithm_at], 3);
    EXPECT_EQ(plan.temporary_bytes.back(), int64_t{32} << 20);
    const std::vector<ir::Fact> bound = ir::bind(w.graph, facts);
    std::vector<ir::Tensor> buffers;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!ir::is_shape_input(w, i)) buffers.push_back(inputs[i]);
    const size_t first_output = buffers.size();
    const auto room = [&](DType dtype, std::vector<int64_t> shape) {
      ir::Tensor t(dtype, std::move(shape));
      t.mutable_data();
      buffers.push_back(std::move(t));
    };
    for (const ir::ValueId v : w.graph.outputs)
      room(bound[static_cast<size_t>(v)].type.dtype,
           ir::static_shape(bound[static_cast<size_t>(v)].type.shape));
    if (kernels == 2)
      room(call.result, {plan.temporary_bytes[0] / static_cast<int64_t>(dtype_bytes(call.result))});
    EXPECT_EQ(static_cast<size_t>(call.workspace), buffers.size());
    if (plan.launches[0].grid[0] > 0) call.play(plan.launches[0].extents, buffers);
    if (kernels == 2) runner.run_kernel(text, 1, plan.launches[1], buffers);
    std::vector<ir::ArrayPtr> arrays;
    for (const auto& t : inputs) arrays.push_back(ir::to_array(t));
    const auto reference = ir::evaluate_graph(w.graph, arrays);
    for (size_t o = 0; o < reference.size(); ++o) {
      const ir::Tensor& got = buffers[first_output + o];
      const ir::Comparison c =
          ir::compare(got, *reference[o], limit >= 0 ? limit : ir::error_limit(got.dtype(), -1));
      EXPECT_TRUE(c.ok || got.size() == 0) << "output " << o << ": " << c.reason << "\n" << text.text;
    }
  }
}

}  // namespace thrice::testing
