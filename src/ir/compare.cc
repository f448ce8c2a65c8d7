#include "ir/compare.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Largest relative error of one correct rounding.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-53;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
      return 0x1p-4;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return 0x1p-3;
    case DType::kF4E2M1:
      return 0x1p-2;
    default:
      return 0.5;  // f8e8m0: powers of two only
  }
}

Comparison failed(std::string reason) {
  Comparison c;
  c.error = kInfinity;
  c.reason = std::move(reason);
  return c;
}

bool same_class(double y, double r) {
  if (std::isnan(r)) return std::isnan(y);
  return y == r;  // infinities of one sign
}

Comparison compare_exact(const Tensor& result, const std::vector<int64_t>& reference) {
  Comparison c;
  c.compared = result.size();
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t y = result.as_int(i), r = reference[static_cast<size_t>(i)];
    if (y == r) continue;
    if (c.worst_index < 0) {
      c.worst_index = i;
      c.worst_value = static_cast<double>(y);
      c.worst_reference = static_cast<double>(r);
      c.error = kInfinity;
      c.reason = fmt::format("element {} is {}, not {}", i, y, r);
    }
  }
  c.ok = c.worst_index < 0;
  return c;
}

Comparison compare_strings(const std::vector<std::string>& result,
                           const std::vector<std::string>& reference) {
  Comparison c;
  c.compared = static_cast<int64_t>(result.size());
  for (size_t i = 0; i < result.size(); ++i)
    if (result[i] != reference[i]) {
      c = failed(fmt::format("element {} is '{}', not '{}'", i, result[i].substr(0, 40),
                             reference[i].substr(0, 40)));
      c.worst_index = static_cast<int64_t>(i);
      return c;
    }
  c.ok = true;
  return c;
}

constexpr int64_t kPart = 1 << 16;

// Elements of a float result and its reference as doubles.
class Elements {
 public:
  Elements(const Tensor& result, const Array& reference) : dtype_(result.dtype()), reference_(reference.f) {
    if (dtype_ == DType::kF32)
      floats_ = reinterpret_cast<const float*>(result.data());
    else
      values_ = to_array(result);
  }
  double value(int64_t i) const { return floats_ ? double{floats_[i]} : values_->f[static_cast<size_t>(i)]; }
  double reference(int64_t i) const { return reference_[static_cast<size_t>(i)]; }
  double rounded_reference(int64_t i) const {
    return floats_ ? double{static_cast<float>(reference(i))} : round_to(dtype_, reference(i));
  }
  bool left_out(int64_t i) const { return !std::isfinite(rounded_reference(i)); }

 private:
  const DType dtype_;
  const std::vector<double>& reference_;
  const float* floats_ = nullptr;  // f32: as they lie there
  ArrayPtr values_;                // others
};

// What a part of the elements says.
struct Seen {
  int64_t compared = 0, worst = -1, wrong_class = -1, out_of_bound = -1;
  double largest = 0, deviation = -1;
  void join(const Seen& later) {
    compared += later.compared;
    if (wrong_class < 0) wrong_class = later.wrong_class;
    if (out_of_bound < 0) out_of_bound = later.out_of_bound;
    largest = std::max(largest, later.largest);
    if (later.deviation > deviation) {
      deviation = later.deviation;
      worst = later.worst;
    }
  }
};

Seen look(const Elements& elements, int64_t begin, int64_t end, const std::vector<double>* element_bound) {
  Seen seen;
  for (int64_t i = begin; i < end; ++i) {
    const double y = elements.value(i);
    if (elements.left_out(i)) {
      if (!same_class(y, elements.rounded_reference(i)) && seen.wrong_class < 0) seen.wrong_class = i;
      continue;
    }
    const double r = elements.reference(i);
    ++seen.compared;
    seen.largest = std::max(seen.largest, std::fabs(r));
    if (!std::isfinite(y)) {
      if (seen.wrong_class < 0) seen.wrong_class = i;
      continue;
    }
    const double d = std::fabs(y - r);
    if (d > seen.deviation) {
      seen.deviation = d;
      seen.worst = i;
    }
    if (element_bound != nullptr && !(d <= (*element_bound)[static_cast<size_t>(i)]) && seen.out_of_bound < 0)
      seen.out_of_bound = i;
  }
  return seen;
}

// Sums over a part, scaled, so that squares neither overflow nor vanish.
struct Squares {
  double d = 0, r = 0;
};
Squares square(const Elements& elements, int64_t begin, int64_t end, double largest) {
  Squares sums;
  for (int64_t i = begin; i < end; ++i) {
    if (elements.left_out(i)) continue;
    const double r = elements.reference(i) / largest, d = elements.value(i) / largest - r;
    sums.d += d * d;
    sums.r += r * r;
  }
  return sums;
}

}  // namespace

double error_limit(DType dtype, double ordinary_error) {
  const double u = unit_roundoff(dtype);
  const bool known = ordinary_error >= 0;
  if (!is_float(dtype)) return 0;  // equal or wrong
  if (dtype == DType::kF32) {
    if (!known) return 1e-5;
    const double base = std::min(1e-5, std::max(2 * ordinary_error, 2e-6));
    return ordinary_error > 5e-6 ? std::max(base, 2 * ordinary_error) : base;
  }
  // Float64 is checked against an oracle of its own precision: both may carry the same rounding errors.
  if (dtype == DType::kF64) return known ? std::max(2 * ordinary_error, 1e-13) : 1e-12;
  // A correctly rounded result passes always, however lucky the ordinary operator was.
  return known ? std::max(1.5 * ordinary_error, u) : 4 * u;
}

Comparison compare(const Tensor& result, const Array& reference, double limit,
                   const std::vector<double>* element_bound) {
  if (result.dtype() != reference.dtype)
    return failed(fmt::format("the result is {}, the reference {}", dtype_name(result.dtype()),
                              dtype_name(reference.dtype)));
  if (result.shape() != reference.shape)
    return failed(fmt::format("the result's shape is {}, the reference's {}",
                              shape_str(to_shape(result.shape())), shape_str(to_shape(reference.shape))));
  if (result.dtype() == DType::kString) return compare_strings(result.string_values(), reference.s);
  if (!is_float(result.dtype())) {
    Comparison c = compare_exact(result, reference.i);
    c.limit = limit;
    return c;
  }
  const int64_t n = result.size();
  if (element_bound != nullptr && static_cast<int64_t>(element_bound->size()) != n)
    throw Error(Code::kInternal, "one bound an element is needed");
  Comparison c;
  c.limit = limit;
  const Elements elements(result, reference);
  // Parts are joined in their order: the answer does not depend on the number of threads.
  const int64_t parts = (n + kPart - 1) / kPart;
  std::vector<Seen> seen(static_cast<size_t>(parts));
  parallel_for(parts, kPart * 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      seen[static_cast<size_t>(p)] = look(elements, p * kPart, std::min(n, (p + 1) * kPart), element_bound);
  });
  Seen all;
  for (const Seen& part : seen) all.join(part);
  const int64_t wrong_class = all.wrong_class, out_of_bound = all.out_of_bound;
  const double largest = all.largest, deviation = all.deviation;
  c.compared = all.compared;
  c.worst_index = all.worst;
  const auto point_at = [&](int64_t i) {
    c.worst_index = i;
    c.worst_value = elements.value(i);
    c.worst_reference = reference.f[static_cast<size_t>(i)];
  };
  if (wrong_class >= 0) {
    point_at(wrong_class);
    c.error = kInfinity;
    c.reason =
        fmt::format("element {} is {}, the reference {}", wrong_class, c.worst_value, c.worst_reference);
    return c;
  }
  if (c.worst_index >= 0) point_at(c.worst_index);
  if (largest == 0) {
    c.error = deviation > 0 ? kInfinity : 0;
  } else if (c.compared > 0) {
    std::vector<Squares> squares(static_cast<size_t>(parts));
    parallel_for(parts, kPart * 4, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        squares[static_cast<size_t>(p)] = square(elements, p * kPart, std::min(n, (p + 1) * kPart), largest);
    });
    double squares_d = 0, squares_r = 0;
    for (const Squares& part : squares) {
      squares_d += part.d;
      squares_r += part.r;
    }
    c.error = std::max(std::sqrt(squares_d / squares_r), deviation / largest);
  }
  if (!(c.error <= limit))
    c.reason =
        fmt::format("error {:.3g} is above the limit {:.3g}; element {} is {:.9g}, the reference {:.9g}",
                    c.error, limit, c.worst_index, c.worst_value, c.worst_reference);
  else if (out_of_bound >= 0) {
    point_at(out_of_bound);
    c.reason = fmt::format("element {} is {:.9g}, the reference {:.9g}: off by more than its bound {:.3g}",
                           out_of_bound, c.worst_value, c.worst_reference,
                           (*element_bound)[static_cast<size_t>(out_of_bound)]);
  } else if (c.compared == 0 && n > 0)
    c.reason = "no element of the reference is finite, so nothing was compared";
  c.ok = c.reason.empty();
  return c;
}

bool nothing_compared(const Comparison& c, const Tensor& result) {
  return !c.ok && c.error == 0 && c.compared == 0 && result.size() > 0;
}

Comparison compare_onnx(const Tensor& result, const Tensor& expected, double rtol, double atol) {
  if (result.dtype() != expected.dtype())
    return failed(
        fmt::format("the result is {}, not {}", dtype_name(result.dtype()), dtype_name(expected.dtype())));
  if (result.shape() != expected.shape())
    return failed(fmt::format("the result's shape is {}, not {}", shape_str(to_shape(result.shape())),
                              shape_str(to_shape(expected.shape()))));
  if (result.dtype() == DType::kString)
    return compare_strings(result.string_values(), expected.string_values());
  const ArrayPtr reference = to_array(expected);
  if (!is_float(result.dtype())) return compare_exact(result, reference->i);
  const ArrayPtr values = to_array(result);
  Comparison c;
  c.limit = rtol;
  c.ok = true;
  for (int64_t i = 0; i < result.size(); ++i) {
    const double y = values->f[static_cast<size_t>(i)], r = reference->f[static_cast<size_t>(i)];
    double excess = 0;  // how much of rtol is used
    if (!std::isfinite(r) || !std::isfinite(y)) {
      excess = same_class(y, r) ? 0 : kInfinity;
    } else {
      ++c.compared;
      const double beyond = std::fabs(y - r) - atol;
      excess = beyond <= 0 ? 0 : r == 0 ? kInfinity : beyond / std::fabs(r);
    }
    if (excess > c.error || c.worst_index < 0) {
      c.error = excess;
      c.worst_index = i;
      c.worst_value = y;
      c.worst_reference = r;
    }
  }
  if (!(c.error <= rtol)) {
    c.ok = false;
    c.reason =
        fmt::format("element {} is {:.9g}, not {:.9g}", c.worst_index, c.worst_value, c.worst_reference);
  }
  return c;
}

}  // namespace thrice::ir
