// cast: the one operator that rounds inside the evaluator.
#include <fmt/format.h>
#include <thrice/status.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {

int64_t clamp_to(DType dtype, double v) {
  if (dtype == DType::kBool) return v != 0;  // NaN is not zero
  if (std::isnan(v)) return 0;
  const int bits = dtype_bits(dtype);
  const double t = std::trunc(v);
  if (is_signed_integer(dtype)) {
    const double limit = std::ldexp(1.0, bits - 1);
    const int64_t highest = bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1;
    if (t >= limit) return highest;
    if (t <= -limit) return -highest - 1;
    return static_cast<int64_t>(t);
  }
  if (t <= 0) return 0;
  if (t >= std::ldexp(1.0, bits))
    return bits == 64 ? -1 : (int64_t{1} << bits) - 1;  // -1: all ones, the largest u64
  return static_cast<int64_t>(static_cast<uint64_t>(t));
}

namespace {

double parse_number(const Node& node, const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size())
    bad_node(node, fmt::format("'{}' is not a number", text.substr(0, 40)));
  return v;
}

// As NumPy prints it: shortest digits that read back, with a fraction or an exponent.
std::string print_number(DType dtype, double v) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v > 0 ? "INF" : "-INF";
  char text[64];
  const bool narrow = dtype != DType::kF64;
  const double magnitude = std::fabs(v);
  const auto format = v == 0 || (magnitude >= 1e-4 && magnitude < 1e16) ? std::chars_format::fixed
                                                                        : std::chars_format::scientific;
  const auto end = narrow ? std::to_chars(text, text + sizeof text, static_cast<float>(v), format).ptr
                          : std::to_chars(text, text + sizeof text, v, format).ptr;
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

// Every value of `from` is a value of `to`, so that a value still unrounded in f64 may stay so.
bool widens(DType from, DType to) {
  if (from == to || to == DType::kF64) return true;
  return to == DType::kF32 && is_float(from) && from != DType::kF64;
}

// Power of two above, below or nearest.
double to_e8m0(double value, const std::string& round_mode) {
  if (!(value > 0) || std::isinf(value) || round_mode == "nearest") return round_to(DType::kF8E8M0, value);
  int exponent = std::ilogb(value);
  if (round_mode == "up" && value > std::ldexp(1.0, exponent)) ++exponent;
  return round_to(DType::kF8E8M0, std::ldexp(1.0, exponent));
}

}  // namespace

Results evaluate_cast(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const auto to = static_cast<DType>(node.int_attr("to"));
  // Only the 8-bit floats saturate; wider ones overflow to Inf.
  const bool saturate = node.int_attr("saturate", 1) != 0 && dtype_bits(to) <= 8;
  const std::string round_mode = node.string_attr("round_mode", "nearest");
  if (to == x.dtype) return {operands[0]};
  auto out = make_array(to, x.shape);
  const auto n = static_cast<size_t>(x.size());
  if (lives_in_s(to)) {
    for (size_t i = 0; i < n; ++i)
      out->s[i] = lives_in_f(x.dtype)       ? print_number(x.dtype, round_to(x.dtype, x.f[i]))
                  : x.dtype == DType::kBool ? (x.i[i] ? "True" : "False")
                  : x.dtype == DType::kU64  ? fmt::format("{}", static_cast<uint64_t>(x.i[i]))
                                            : fmt::format("{}", x.i[i]);
  } else if (lives_in_s(x.dtype)) {
    for (size_t i = 0; i < n; ++i) {
      const double v = parse_number(node, x.s[i]);
      if (lives_in_f(to))
        out->f[i] = round_to(to, v, saturate);
      else if (std::fabs(v) < 9e15)
        out->i[i] = wrap_to(to, static_cast<int64_t>(v));
      else
        out->i[i] = wrap_to(to, std::strtoll(x.s[i].c_str(), nullptr, 10));
    }
  } else if (lives_in_f(x.dtype) && lives_in_f(to)) {
    if (widens(x.dtype, to))
      out->f = x.f;
    else
      parallel_for(x.size(), 20, [&](int64_t begin, int64_t end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
          out->f[i] = to == DType::kF8E8M0 ? to_e8m0(x.f[i], round_mode) : round_to(to, x.f[i], saturate);
      });
  } else if (lives_in_f(x.dtype)) {
    for (size_t i = 0; i < n; ++i) out->i[i] = clamp_to(to, x.f[i]);
  } else if (lives_in_f(to)) {
    for (size_t i = 0; i < n; ++i) {
      const double v = x.dtype == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(x.i[i]))
                                              : static_cast<double>(x.i[i]);
      out->f[i] = round_to(to, v, saturate);
    }
  } else {
    for (size_t i = 0; i < n; ++i) out->i[i] = wrap_to(to, x.i[i]);
  }
  return {out};
}

}  // namespace thrice::ir
