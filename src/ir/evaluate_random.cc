// random: the host generator behind RandomNormal, RandomUniform, Bernoulli, Multinomial and dropout.
#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>

#include "base/rng.h"
#include "ir/evaluate_groups.h"

namespace thrice::ir {
namespace {

void store(Array& out, size_t i, double v) {
  if (lives_in_f(out.dtype))
    out.f[i] = round_to(out.dtype, v);
  else
    out.i[i] = wrap_to(out.dtype, clamp_to(DType::kI64, v));
}

// Class numbers drawn from softmax(x) of each row.
ArrayPtr multinomial(const Node& node, const Array& x, DType dtype, Rng& random) {
  if (x.shape.size() != 2 || !lives_in_f(x.dtype) || x.shape[1] == 0)
    bad_node(node, "needs log-probabilities [batch, classes]");
  const int64_t classes = x.shape[1], samples = node.int_attr("sample_size", 1);
  auto out = make_array(dtype, {x.shape[0], samples});
  for (int64_t b = 0; b < x.shape[0]; ++b) {
    const double* row = x.f.data() + b * classes;
    double top = row[0], total = 0;
    for (int64_t c = 1; c < classes; ++c) top = std::max(top, row[c]);
    for (int64_t c = 0; c < classes; ++c) total += std::exp(row[c] - top);
    for (int64_t s = 0; s < samples; ++s) {
      double left = random.uniform() * total;
      int64_t c = 0;
      for (; c + 1 < classes; ++c) {
        left -= std::exp(row[c] - top);
        if (left < 0) break;
      }
      store(*out, static_cast<size_t>(b * samples + s), static_cast<double>(c));
    }
  }
  return out;
}

}  // namespace

Results evaluate_random(const Node& node, const Operands& operands) {
  const std::string kind = node.string_attr("kind", "normal");
  const Array& x = operand(node, operands, 0);
  const DType otherwise = kind == "bernoulli" ? x.dtype : kind == "multinomial" ? DType::kI32 : DType::kF32;
  const auto dtype = static_cast<DType>(node.int_attr("dtype", static_cast<int64_t>(otherwise)));
  Rng random(static_cast<uint64_t>(node.int_attr("seed", 0)));
  if (kind == "multinomial") return {multinomial(node, x, dtype, random)};
  if (lives_in_s(dtype)) bad_node(node, "not defined on strings");
  if (kind == "bernoulli") {
    if (!lives_in_f(x.dtype)) bad_node(node, "probabilities must be floats");
    auto out = make_array(dtype, x.shape);
    for (size_t i = 0; i < x.f.size(); ++i) store(*out, i, random.uniform() < x.f[i] ? 1 : 0);
    return {out};
  }
  auto out = make_array(dtype, ints_of(node, operands, 0));
  const auto n = static_cast<size_t>(out->size());
  if (kind == "normal") {
    const double mean = node.float_attr("mean", 0), scale = node.float_attr("scale", 1);
    for (size_t i = 0; i < n; ++i) store(*out, i, mean + scale * random.normal());
  } else if (kind == "uniform") {
    const double low = node.float_attr("low", 0), high = node.float_attr("high", 1);
    for (size_t i = 0; i < n; ++i) store(*out, i, low + (high - low) * random.uniform());
  } else {
    bad_node(node, fmt::format("unknown kind '{}'", kind));
  }
  return {out};
}

}  // namespace thrice::ir
