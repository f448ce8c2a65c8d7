#include "flow/whole_model.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/evaluate.h"
#include "ir/inputs.h"
#include "measure/ordinary.h"

namespace thrice::flow {

std::string bindings_text(const ir::Bindings& bindings) {
  std::string text;
  for (const auto& [symbol, value] : bindings)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", symbol, value);
  return text;
}

double ordinary_error(double original, double host) {
  return std::isfinite(host) ? std::clamp(original, host, 2 * host) : original;
}

namespace {

constexpr double kIllConditioned = 5e-6;  // above it error_limit follows the ordinary error wherever it goes

std::string case_text(const ir::Bindings& bindings) {
  return bindings.empty() ? "fixed shapes" : bindings_text(bindings);
}

// For free symbols, shorter extents: every symbol halved, and an odd length just above half.
std::vector<ir::Bindings> shorter(const ir::Bindings& bindings) {
  std::vector<ir::Bindings> cases;
  if (bindings.empty()) return cases;
  ir::Bindings half = bindings, odd = bindings;
  for (auto& [symbol, value] : half) value = std::max<int64_t>(1, value / 2);
  for (auto& [symbol, value] : odd) value = value > 2 ? (value / 2) | 1 : value;
  if (half != bindings) cases.push_back(half);
  if (odd != bindings && odd != half) cases.push_back(odd);
  return cases;
}

std::vector<exec::Operand> on_device(exec::Executor& executor, const std::vector<ir::Tensor>& inputs) {
  std::vector<exec::Operand> operands;
  const auto& code = executor.code();
  for (const ir::Tensor& tensor : inputs) {
    exec::Operand operand = exec::Operand::from_host(tensor);
    if (tensor.bytes() > 0 && tensor.dtype() != DType::kString) {
      const auto buffer = code.device->allocate(tensor.bytes());
      operand.device = {buffer, 0, tensor.bytes()};
      executor.stream().copy_to_device(operand.device, {tensor.data(), tensor.bytes()});
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

// The oracle itself cannot run the model at these extents.
struct ModelRefuses : Error {
  using Error::Error;
};

class WholeModelCheck {
 public:
  WholeModelCheck(exec::Executor& best, exec::Executor& original, const Listener& listener)
      : best_(best), original_(original), listener_(listener), graph_(*best.code().graph) {
    check.verified = true;
    compared_.assign(graph_.outputs.size(), false);
  }

  void compare(const ir::Bindings& at, ir::InputKind kind, uint64_t seed) {
    listener_.tell({"verify model", case_text(at), 0, 0, 0, -1});
    std::vector<ir::ArrayPtr> reference;
    std::vector<ir::Tensor> inputs;
    try {
      inputs = ir::make_inputs(graph_, at, kind, seed);
      std::vector<ir::ArrayPtr> arrays;
      for (const ir::Tensor& t : inputs) arrays.push_back(ir::to_array(t));
      reference = ir::evaluate_graph(graph_, arrays);
    } catch (const Error& e) {
      throw ModelRefuses(e.code(), e.what());
    }
    const std::vector<ir::Tensor> ordinary = original_.run_host(inputs), results = best_.run_host(inputs);
    std::optional<std::vector<ir::ArrayPtr>> on_host;
    for (size_t o = 0; o < results.size(); ++o) {
      const ir::Comparison base = ir::compare(ordinary[o], *reference[o], 1e300);
      const double original = base.reason.empty() ? base.error : -1;
      ir::Comparison c =
          ir::compare(results[o], *reference[o], ir::error_limit(results[o].dtype(), original));
      // One run of the original is one draw of its rounding errors: where it decides, the host's decides too.
      if (is_float(results[o].dtype()) && original >= 0 && (!c.ok || original > kIllConditioned)) {
        if (!on_host) on_host = ordinary_on_host(inputs);
        if (!on_host->empty()) {
          const double host = ir::compare(ir::to_tensor(*(*on_host)[o]), *reference[o], 1e300).error;
          c = ir::compare(results[o], *reference[o],
                          ir::error_limit(results[o].dtype(), ordinary_error(original, host)));
        }
      }
      if (ir::nothing_compared(c, results[o])) continue;
      compared_[o] = true;
      const double share = c.limit > 0 ? c.error / c.limit : c.error;
      if (!(share <= worst_share_)) {
        worst_share_ = share;
        check.max_error = c.error;
        check.error_limit = c.limit;
      }
      if (!c.ok)
        fail(fmt::format("output '{}' at {} with {} inputs: {}", graph_.output_names[o], case_text(at),
                         ir::input_kind_name(kind), c.reason));
    }
  }
  bool all_compared() const {
    return std::find(compared_.begin(), compared_.end(), false) == compared_.end();
  }
  void refuse_uncompared(const ir::Bindings& at) {
    for (size_t o = 0; o < compared_.size(); ++o)
      if (!compared_[o])
        fail(
            fmt::format("output '{}' at {}: no kind of inputs gave a finite number to compare; look for a "
                        "division by zero, or the "
                        "root of a negative number, in the model",
                        graph_.output_names[o], case_text(at)));
  }

  ModelCheck check;

 private:
  // What float32 costs on the host, node by node; empty where the graph cannot be evaluated so (control flow,
  // sizes that depend on data): then the device's original judges alone.
  std::vector<ir::ArrayPtr> ordinary_on_host(const std::vector<ir::Tensor>& inputs) const {
    try {
      std::vector<ir::ArrayPtr> arrays;
      std::vector<ir::Fact> facts;
      for (const ir::Tensor& t : inputs) {
        arrays.push_back(ir::to_array(t));
        facts.push_back({{t.dtype(), ir::to_shape(t.shape())}, &t});
      }
      return measure::evaluate_ordinary(graph_, arrays, ir::bind(graph_, facts));
    } catch (const Error&) {
      return {};
    }
  }
  void fail(std::string reason) {
    if (!check.verified) return;
    check.verified = false;
    check.reason = std::move(reason);
  }
  exec::Executor &best_, &original_;
  const Listener& listener_;
  const ir::Graph& graph_;
  std::vector<bool> compared_;  // by output, over all comparisons so far
  double worst_share_ = -1;
};

}  // namespace

ModelCheck check_model(exec::Executor& best, exec::Executor& original, const ir::Bindings& bindings,
                       uint64_t seed, const Listener& listener, const std::vector<ir::Bindings>& also) {
  WholeModelCheck whole(best, original, listener);
  for (const ir::InputKind kind : {ir::InputKind::kNormal, ir::InputKind::kUniform})
    whole.compare(bindings, kind, seed);
  for (uint64_t k = 0; k < 4 && !whole.all_compared(); ++k)
    whole.compare(bindings, ir::InputKind::kPositive, seed + k);
  whole.refuse_uncompared(bindings);
  whole.check.notes.push_back("verified against float64 at " + case_text(bindings));
  std::vector<ir::Bindings> others = shorter(bindings);
  for (const ir::Bindings& at : also)
    if (std::find(others.begin(), others.end(), at) == others.end()) others.push_back(at);
  for (const ir::Bindings& at : others) {  // lengths are what they are for: one kind
    try {
      whole.compare(at, ir::InputKind::kNormal, seed);
      whole.check.notes.push_back("verified against float64 at " + case_text(at));
    } catch (const ModelRefuses& e) {
      whole.check.notes.push_back(
          fmt::format("not verified at {}: the model itself refuses it ({})", case_text(at), e.what()));
    }
  }
  return whole.check;
}

std::vector<measure::Timing> time_models(backend::Device& device, exec::Executor& original,
                                         exec::Executor& best, const ir::Bindings& bindings, uint64_t seed) {
  const std::vector<ir::Tensor> inputs =
      ir::make_inputs(*best.code().graph, bindings, ir::InputKind::kUniform, seed);
  const auto a = on_device(original, inputs), b = on_device(best, inputs);
  measure::TimingOptions options;
  options.max_total_us = 3e6;
  // Each on its own stream; a run ends with a synchronization, as a caller who waits for the answer sees it.
  return measure::time_interleaved(device, best.stream(),
                                   {[&] {
                                      original.run(a);
                                      original.synchronize();
                                    },
                                    [&] {
                                      best.run(b);
                                      best.synchronize();
                                    }},
                                   options);
}

LoadTimes time_loads(backend::Device& device, exec::Executor& executor, const ir::Bindings& bindings,
                     uint64_t seed) {
  const std::vector<ir::Tensor> inputs =
      ir::make_inputs(*executor.code().graph, bindings, ir::InputKind::kUniform, seed);
  const auto operands = on_device(executor, inputs);
  const measure::Timed timed([&] { executor.run(operands); });
  measure::TimingOptions options;
  options.min_batch_us = 2000;
  options.min_samples = 9;
  options.max_total_us = 300e3;
  LoadTimes times;
  options.rest_us = 30e3;
  times.burst = measure::time_one(device, executor.stream(), timed, options);
  options.rest_us = 0;
  options.settle_us = 1e6;
  times.sustained = measure::time_one(device, executor.stream(), timed, options);
  return times;
}

std::vector<std::vector<double>> step_times(exec::Executor& executor, const ir::Bindings& bindings,
                                            uint64_t seed) {
  constexpr int kRuns = 5;
  const std::vector<ir::Tensor> inputs =
      ir::make_inputs(*executor.code().graph, bindings, ir::InputKind::kUniform, seed);
  const auto operands = on_device(executor, inputs);
  executor.run(operands);
  std::vector<std::vector<std::vector<double>>> samples(executor.code().segments.size());
  for (size_t s = 0; s < samples.size(); ++s) samples[s].resize(executor.code().segments[s].steps.size());
  exec::RunOptions options;
  options.observe = [&](const exec::StepEvent& event) {
    samples[event.segment][event.step].push_back(event.device_us);
  };
  for (int run = 0; run < kRuns; ++run) executor.run(operands, options);
  std::vector<std::vector<double>> medians(samples.size());
  for (size_t s = 0; s < samples.size(); ++s)
    for (auto& list : samples[s]) {
      std::sort(list.begin(), list.end());
      medians[s].push_back(list.empty() ? 0 : list[list.size() / 2]);
    }
  return medians;
}

}  // namespace thrice::flow
