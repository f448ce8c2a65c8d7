#include "flow/whole_model.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/rng.h"
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

// More sequences, a quarter as long; two sequences, four times as long.
std::vector<ir::Bindings> longer(const ir::Bindings& bindings, const ir::Shape& mask) {
  const auto symbol = [&](size_t axis) {
    const std::string name = mask[axis].str();
    return bindings.count(name) ? name : std::string();
  };
  const std::string batch = symbol(0), length = symbol(1);
  std::vector<ir::Bindings> cases;
  if (!batch.empty()) {
    ir::Bindings& more = cases.emplace_back(bindings);
    more[batch] = 2 * more[batch] + 1;
    if (!length.empty()) more[length] = std::max<int64_t>(2, more[length] / 4);
  }
  if (!length.empty()) {
    ir::Bindings& more = cases.emplace_back(bindings);
    more[length] *= 4;
    if (!batch.empty()) more[batch] = std::min<int64_t>(more[batch], 2);
  }
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
  WholeModelCheck(exec::Executor& best, exec::Executor& original, const Listener& listener,
                  const PaddedModel* padded = nullptr)
      : best_(best),
        original_(original),
        listener_(listener),
        padded_(padded),
        graph_(padded ? *padded->graph : *best.code().graph) {
    check.verified = true;
    compared_.assign(graph_.outputs.size(), false);
  }

  // `mask`: of a padded model.
  void compare(const ir::Bindings& at, ir::InputKind kind, uint64_t seed, const ir::Tensor* mask = nullptr) {
    listener_.tell({"verify model", case_text(at), 0, 0, 0, -1});
    std::vector<ir::ArrayPtr> reference;
    std::vector<ir::Tensor> inputs;
    try {
      inputs = ir::make_inputs(graph_, at, kind, seed);
      if (mask != nullptr) inputs[padded_->packing.mask_input] = *mask;
      std::vector<ir::ArrayPtr> arrays;
      for (const ir::Tensor& t : inputs) arrays.push_back(ir::to_array(t));
      reference = ir::evaluate_graph(graph_, arrays);
    } catch (const Error& e) {
      throw ModelRefuses(e.code(), e.what());
    }
    std::vector<ir::Tensor> ordinary = original_.run_host(inputs), results = best_.run_host(inputs);
    std::optional<std::vector<ir::ArrayPtr>> on_host;
    for (size_t o = 0; o < results.size(); ++o) {
      const auto counting = counting_elements(o, mask, reference[o]->shape);
      if (counting) {
        if (counting->empty()) continue;
        reference[o] = chosen(*reference[o], *counting);
        ordinary[o] = chosen(ordinary[o], *counting);
        results[o] = chosen(results[o], *counting);
      }
      const ir::Comparison base = ir::compare(ordinary[o], *reference[o], 1e300);
      const double original = base.reason.empty() ? base.error : -1;
      ir::Comparison c =
          ir::compare(results[o], *reference[o], ir::error_limit(results[o].dtype(), original));
      // One run of the original is one draw of its rounding errors: where it decides, the host's decides too.
      if (is_float(results[o].dtype()) && original >= 0 && (!c.ok || original > kIllConditioned)) {
        if (!on_host) on_host = ordinary_on_host(inputs);
        if (!on_host->empty()) {
          ir::Tensor plain = ir::to_tensor(*(*on_host)[o]);
          if (counting) plain = chosen(plain, *counting);
          const double host = ir::compare(plain, *reference[o], 1e300).error;
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
  // Elements of an output that padding does not decide; nullopt: all of them.
  std::optional<std::vector<int64_t>> counting_elements(size_t output, const ir::Tensor* mask,
                                                        const std::vector<int64_t>& shape) const {
    using Kind = transform::PackedOutput::Kind;
    if (mask == nullptr || padded_->packing.outputs[output].kind == Kind::kExact) return std::nullopt;
    const auto& [kind, axes] = padded_->packing.outputs[output];
    const int64_t length = mask->shape()[1];
    const auto counts = [&](int64_t b) {
      const auto& picks = padded_->packing.picks;
      int64_t all = 0;
      for (int64_t s = 0; s < length; ++s) all += mask->as_int(b * length + s) != 0;
      return all > 0 && std::all_of(picks.begin(), picks.end(), [&](int64_t p) {
               return mask->as_int(b * length + (p < 0 ? p + length : p)) != 0;
             });
    };
    std::vector<int64_t> elements;
    for (int64_t i = 0; i < ir::num_elements(shape); ++i) {
      int64_t rest = i, b = 0, s = 0;
      for (int a = static_cast<int>(shape.size()) - 1; a >= 0; --a) {
        const int64_t n = shape[static_cast<size_t>(a)];
        if (a == axes.tokens) s = rest % n;
        if (a == axes.batch) b = rest % n / axes.inner;
        rest /= n;
      }
      if (axes.batch == axes.tokens) b = s / length, s %= length;
      if (kind == Kind::kPicked ? counts(b) : mask->as_int(b * length + s) != 0) elements.push_back(i);
    }
    return elements;
  }
  static ir::Tensor chosen(const ir::Tensor& all, const std::vector<int64_t>& elements) {
    ir::Tensor some(all.dtype(), {static_cast<int64_t>(elements.size())});
    const size_t bytes = dtype_bytes(all.dtype());
    std::byte* to = some.mutable_data();
    for (size_t i = 0; i < elements.size(); ++i)
      std::memcpy(to + i * bytes, all.data() + static_cast<size_t>(elements[i]) * bytes, bytes);
    return some;
  }
  static ir::ArrayPtr chosen(const ir::Array& all, const std::vector<int64_t>& elements) {
    auto some = std::make_shared<ir::Array>();
    some->dtype = all.dtype;
    some->shape = {static_cast<int64_t>(elements.size())};
    for (const int64_t i : elements) {
      if (!all.f.empty()) some->f.push_back(all.f[static_cast<size_t>(i)]);
      if (!all.i.empty()) some->i.push_back(all.i[static_cast<size_t>(i)]);
    }
    return some;
  }

  exec::Executor &best_, &original_;
  const Listener& listener_;
  const PaddedModel* padded_;
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

ModelCheck check_packed_model(exec::Executor& best, exec::Executor& original, const PaddedModel& padded,
                              const ir::Bindings& bindings, uint64_t seed, const Listener& listener) {
  WholeModelCheck whole(best, original, listener, &padded);
  const ir::Value& mask = padded.graph->value(padded.graph->inputs[padded.packing.mask_input]);
  Rng random(seed);
  const auto compare = [&](const ir::Bindings& at, ir::InputKind kind, const std::string& what) {
    const int64_t batch = mask.type.shape[0].evaluate(at), length = mask.type.shape[1].evaluate(at);
    std::vector<int64_t> lengths;
    for (int64_t b = 0; b < batch; ++b)
      lengths.push_back(1 + static_cast<int64_t>(random.below(static_cast<size_t>(length))));
    if (what == "whole sequences and one position")
      for (int64_t b = 0; b < batch; ++b)
        if (b < 2) lengths[static_cast<size_t>(b)] = b == 0 ? length : 1;
    ir::Tensor flags = ir::padding_mask(mask.type.dtype, {batch, length}, lengths);
    if (what == "masks with holes") {
      // The first position of all but the last sequence, which is padding alone where there are others.
      for (int64_t i = 0; i < flags.size(); ++i)
        flags.set(i, i / length + 1 == batch && batch > 1     ? 0
                     : i % length == 0 || random.below(3) > 0 ? 1
                                                              : 0);
    }
    whole.compare(at, kind, seed, &flags);
    whole.check.notes.push_back(
        fmt::format("verified against the padded model in float64 at {}: {}", case_text(at), what));
  };
  compare(bindings, ir::InputKind::kNormal, "whole sequences and one position");
  compare(bindings, ir::InputKind::kUniform, "drawn lengths");
  compare(bindings, ir::InputKind::kNormal, "masks with holes");
  for (uint64_t k = 0; k < 4 && !whole.all_compared(); ++k)
    compare(bindings, ir::InputKind::kPositive, "whole sequences and one position");
  whole.refuse_uncompared(bindings);
  // Longer sequences and more of them, too: what only shows beyond the lengths that were tuned for.
  std::vector<ir::Bindings> others = shorter(bindings);
  for (const ir::Bindings& at : longer(bindings, mask.type.shape)) others.push_back(at);
  for (const ir::Bindings& at : others) try {
      compare(at, ir::InputKind::kNormal, "drawn lengths");
    } catch (const ModelRefuses& e) {
      whole.check.notes.push_back(
          fmt::format("not verified at {}: the model itself refuses it ({})", case_text(at), e.what()));
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
