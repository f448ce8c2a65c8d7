#include "measure/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/arguments.h"
#include "measure/judge.h"

namespace thrice::measure {
namespace {

using ir::InputKind;

constexpr size_t kPositiveRounds = 4;  // each a new seed

struct Round {
  InputKind kind;
  uint64_t seed;
};

// Sums of the largest finite values and infinities depend on their order (Inf - Inf, overflow on the way):
// products, windows and reductions are judged on the other kinds, element by element operators and views on
// edge values too.
bool allows_edge_values(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    const ir::OpClass cls = ir::op_class(node.op);
    if (cls == ir::OpClass::kHeavy || cls == ir::OpClass::kReduce) return false;
  }
  return true;
}

std::vector<Round> rounds_of(Gate gate, uint64_t seed, const ir::Graph& graph) {
  if (gate == Gate::kScreening) return {{InputKind::kNormal, seed}, {InputKind::kUniform, seed}};
  std::vector<Round> rounds;
  for (InputKind kind : {InputKind::kSmallIntegers, InputKind::kNormal, InputKind::kUniform,
                         InputKind::kHeavyTail, InputKind::kWideRange, InputKind::kOutliers})
    rounds.push_back({kind, seed});
  if (allows_edge_values(graph)) rounds.push_back({InputKind::kEdgeValues, seed});
  rounds.push_back({InputKind::kNormal, seed + 1});
  return rounds;
}

}  // namespace

Phase first_launch_phase(const target::DeviceSpec& device) {
  return device.api == target::Api::kOpenCL ? Phase::kBuild : Phase::kDevice;
}

CheckResult check(backend::Device& device, backend::Stream& stream, const backend::ProgramPtr& program,
                  const ir::Workload& workload, const artifact::LaunchPlan& launches, Oracle& oracle,
                  const CheckOptions& options) {
  // Not a structured binding: C++20's lambdas may capture one, Clang 14 refuses it.
  const Gate gate = options.gate;
  const uint64_t seed = options.seed;
  const auto& entered = options.entered;
  CheckResult result;
  if (device.spec().api == target::Api::kNull) {
    result.ok = true;
    result.error = result.error_limit = -1;
    result.reason = "null device, not verified";
    return result;
  }
  Arguments arguments(device, stream, program, workload, launches, oracle.facts(), options.fences,
                      options.shares);
  std::vector<bool> compared(workload.graph.outputs.size(), false);
  const auto all_compared = [&] {
    return std::find(compared.begin(), compared.end(), false) == compared.end();
  };
  size_t begun = 0;  // rounds so far: fills alternate
  const auto launch = [&](const Round& round) {
    const std::vector<ir::Tensor>& inputs = oracle.inputs(round.kind, round.seed);
    if (entered) entered(begun == 0 ? first_launch_phase(device.spec()) : Phase::kDevice);
    arguments.prepare(inputs, fill_of(begun++));
    for (const backend::RecordedLaunch& recorded : arguments.launches()) stream.launch(recorded);
    stream.synchronize();
    if (entered) entered(Phase::kHost);
    return left_by(arguments, workload, inputs);
  };
  // False: wrong, nothing further need be looked at.
  const auto passes = [&](const Round& round, const Left& left, size_t number) {
    const Judgement j =
        judge(left, oracle, round.kind, round.seed, fill_of(number).poison, gate == Gate::kFull);
    if (!j.reason.empty() || !(j.error * result.error_limit <= result.error * j.limit) ||
        result.error_limit == 0) {
      result.error = j.error;
      result.error_limit = j.limit;
    }
    result.reason = j.reason;
    if (!j.reason.empty()) return false;
    for (size_t o = 0; o < compared.size(); ++o) compared[o] = compared[o] || j.compared[o];
    return true;
  };
  // All rounds run before the first answer is computed; then answers are computed side by side. What such a
  // batch may hold of large regions is bounded: those go round by round.
  const std::vector<Round> rounds = rounds_of(gate, seed, workload.graph);
  for (size_t next = 0; next < rounds.size();) {
    const size_t first = next;
    constexpr size_t kHeld = size_t{256} << 20;  // bytes of outputs
    std::vector<Left> left;
    std::vector<std::pair<InputKind, uint64_t>> cases;
    for (size_t held = 0; next < rounds.size() && held < kHeld; ++next) {
      left.push_back(launch(rounds[next]));
      if (!left.back().damage.empty()) {
        passes(rounds[next], left.back(), next);
        return result;
      }
      cases.emplace_back(rounds[next].kind, rounds[next].seed);
      for (const ir::Tensor& output : left.back().outputs) held += output.bytes();
    }
    oracle.answer_all(cases, gate == Gate::kFull);
    for (size_t r = first; r < next; ++r) {
      if (!passes(rounds[r], left[r - first], r)) return result;
      left[r - first] = {};
      if (entered) entered(Phase::kHost);
    }
  }
  // A few results under a root or logarithm may be NaN whatever the usual kinds drew: then inputs inside its
  // domain.
  for (size_t again = 0; !all_compared() && again < kPositiveRounds; ++again) {
    const Round round{InputKind::kPositive, seed + again};
    const size_t number = begun;
    if (!passes(round, launch(round), number)) return result;
  }
  const auto never = std::find(compared.begin(), compared.end(), false);
  if (never != compared.end()) {
    result.reason = fmt::format(
        "output {}: no kind of inputs gave a number to compare, positive ones neither: every element is NaN, "
        "infinite, or beyond "
        "what the ordinary operator can compute",
        never - compared.begin());
    return result;
  }
  result.ok = true;
  return result;
}

}  // namespace thrice::measure
