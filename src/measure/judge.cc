#include "measure/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "ir/evaluate_threads.h"
#include "measure/arguments.h"

namespace thrice::measure {
namespace {

// An element that no launch wrote still holds the poison in every byte. All ones are a NaN of every float
// type with a payload that no operator makes; the second poison is a value, rare enough only where an element
// has four bytes. Integers may hold either by right, but not both, so the poisons alternate and compare()
// decides.
bool can_show_poison(DType dtype, std::byte poison) {
  return is_float(dtype) && dtype_bytes(dtype) >= (poison == std::byte{0xFF} ? 2u : 4u);
}

// The first element of `tensor` that still holds the poison in every byte; -1 = none does.
template <class Word>
int64_t first_poisoned(const ir::Tensor& tensor, std::byte poison) {
  constexpr int64_t kPart = 1024;  // looked through as a whole: the compiler makes vectors of that
  Word pattern;
  std::memset(&pattern, std::to_integer<int>(poison), sizeof(pattern));
  const auto at = [&](int64_t e) {
    Word word;
    std::memcpy(&word, tensor.data() + static_cast<size_t>(e) * sizeof(Word), sizeof(Word));
    return word;
  };
  std::atomic<int64_t> first{tensor.size()};
  ir::parallel_for((tensor.size() + kPart - 1) / kPart, kPart, [&](int64_t from, int64_t until) {
    for (int64_t part = from; part < until && part * kPart < first; ++part) {
      const int64_t begin = part * kPart, end = std::min(tensor.size(), begin + kPart);
      int found = 0;
      for (int64_t e = begin; e < end; ++e) found |= at(e) == pattern ? 1 : 0;
      for (int64_t e = begin; found && e < end; ++e)
        if (at(e) == pattern) {
          int64_t before = first;
          while (e < before && !first.compare_exchange_weak(before, e)) {
          }
          return;
        }
    }
  });
  return first < tensor.size() ? first.load() : -1;
}
int64_t first_poisoned(const ir::Tensor& tensor, std::byte poison) {
  switch (dtype_bytes(tensor.dtype())) {
    case 2:
      return first_poisoned<uint16_t>(tensor, poison);
    case 4:
      return first_poisoned<uint32_t>(tensor, poison);
    default:
      return first_poisoned<uint64_t>(tensor, poison);
  }
}

Judgement judge_output(const ir::Tensor& result, const Oracle::Case& answer, size_t o, std::byte poison) {
  Judgement j;
  j.compared = {result.size() == 0};
  if (can_show_poison(result.dtype(), poison))
    if (const int64_t e = first_poisoned(result, poison); e >= 0) {
      j.reason = fmt::format("output {}: element {} of {} was never written", o, e, result.size());
      return j;
    }
  if (std::isinf(answer.limits[o])) return j;
  const std::vector<double>& bound = answer.bounds[o];
  const ir::Comparison c =
      ir::compare(result, *answer.outputs[o], answer.limits[o], bound.empty() ? nullptr : &bound);
  // Inputs may make every element of the answer NaN or Inf. Then the classes are what is judged; other kinds
  // judge the numbers.
  if (ir::nothing_compared(c, result)) return j;
  j.compared = {true};
  j.error = c.error;
  j.limit = answer.limits[o];
  if (!c.ok)
    j.reason = fmt::format("output {}: {} (error {:.3g}, limit {:.3g}; element {}: {:.9g}, expected {:.9g})",
                           o, c.reason, c.error, c.limit, c.worst_index, c.worst_value, c.worst_reference);
  return j;
}

}  // namespace

Left left_by(Arguments& arguments, const ir::Workload& workload, const std::vector<ir::Tensor>& inputs) {
  Left left;
  left.damage = arguments.damage(inputs);
  for (size_t o = 0; o < workload.graph.outputs.size() && left.damage.empty(); ++o)
    left.outputs.push_back(arguments.output(o));
  return left;
}

Judgement judge(const Left& left, Oracle& oracle, ir::InputKind kind, uint64_t seed, std::byte poison,
                bool with_bounds) {
  Judgement worst;
  const auto named = [&](Judgement j) {
    j.reason = fmt::format("{} inputs, seed {}: {}", ir::input_kind_name(kind), seed, j.reason);
    return j;
  };
  worst.reason = left.damage;
  if (!worst.reason.empty()) return named(worst);
  std::vector<bool> compared;
  const Oracle::Case& answer = oracle.answer(kind, seed, with_bounds);
  for (size_t o = 0; o < left.outputs.size(); ++o) {
    const Judgement j = judge_output(left.outputs[o], answer, o, poison);
    if (!j.reason.empty()) return named(j);
    compared.push_back(j.compared[0]);
    if (worst.limit == 0 || !(j.error * worst.limit <= worst.error * j.limit)) worst = j;
  }
  worst.compared = compared;
  return worst;
}

Judgement judge(Arguments& arguments, const ir::Workload& workload, Oracle& oracle, ir::InputKind kind,
                uint64_t seed, std::byte poison, bool with_bounds) {
  const Left left = left_by(arguments, workload, oracle.inputs(kind, seed));
  return judge(left, oracle, kind, seed, poison, with_bounds);
}

}  // namespace thrice::measure
