// The emitter's vector form: values along one coordinate as OpenCL vectors.
#include <fmt/format.h>

#include "family/emitter.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Op;

namespace {

// An operator on vectors of type `v`, operands already of that type; "" where it is written element by
// element.
std::string vector_expression(const ir::Node& node, const std::string& v, const std::vector<std::string>& x) {
  switch (node.op) {
    case Op::neg:
      return fmt::format("(-{})", x[0]);
    case Op::abs:
      return fmt::format("fabs({})", x[0]);
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
      return fmt::format("{}({})", ir::op_name(node.op), x[0]);
    case Op::reciprocal:
      return fmt::format("(({})(1) / {})", v, x[0]);
    case Op::relu:  // NaN stays NaN
      return fmt::format("({0} < ({1})(0) ? ({1})(0) : {0})", x[0], v);
    case Op::add:
      return fmt::format("({} + {})", x[0], x[1]);
    case Op::sub:
      return fmt::format("({} - {})", x[0], x[1]);
    case Op::mul:
      return fmt::format("({} * {})", x[0], x[1]);
    case Op::div:
      return fmt::format("({} / {})", x[0], x[1]);
    case Op::min:
    case Op::max:  // a NaN of either operand is the result, as in operators.h
      return fmt::format("((({0} {2} {1}) | ({0} != {0})) ? {0} : {1})", x[0], x[1],
                         node.op == Op::min ? "<" : ">");
    default:
      return {};
  }
}

}  // namespace

bool Emitter::write_lanes(Index lane, int64_t lanes, const std::function<void()>& write) {
  const auto scopes = scopes_;
  const auto extents = extents_;
  const auto extent_of = extent_of_;
  const auto printed = printed_;
  const auto counters = counters_;
  const auto bound = bound_;
  const auto vectors = vectors_;
  const std::string preamble = preamble_, head = head_, body = body_;
  const int indent = indent_;
  lanes_ = lanes;
  lane_ = lane;
  try {
    write();
    lanes_ = 0;
    return true;
  } catch (const NotMatched&) {
    lanes_ = 0;
    scopes_ = scopes;
    extents_ = extents;
    extent_of_ = extent_of;
    printed_ = printed;
    counters_ = counters;
    bound_ = bound;
    vectors_ = vectors;
    preamble_ = preamble;
    head_ = head;
    body_ = body;
    indent_ = indent;
    return false;
  }
}

std::string Emitter::variable_type(DType dtype) const {
  return lanes_ > 0 ? fmt::format("{}{}", compute_type(dtype), lanes_) : compute_type(dtype);
}

int64_t Emitter::lane_stride(Index offset) const {
  const auto slope = index_.slope(offset, lane_);
  if (!slope || (*slope != 0 && *slope != 1)) throw NotMatched{"lanes do not follow each other in memory"};
  return *slope;
}

std::string Emitter::load_lanes(const std::string& buffer, DType dtype, Index offset) {
  if (!is_float(dtype) || storage_type(dtype) != compute_type(dtype))
    throw NotMatched{"vectors are loaded of floats that are stored as they are computed"};
  const std::string at = text(offset);
  if (lane_stride(offset) == 1) return declare(dtype, fmt::format("vload{}(0, {} + {})", lanes_, buffer, at));
  return declare(dtype, fmt::format("({})({}[{}])", variable_type(dtype), buffer, at));
}

std::string Emitter::compute_lanes(const ir::Node& node, const std::vector<DType>& types,
                                   const std::vector<std::string>& operands, DType result) {
  for (const DType t : types)
    if (t != result || !is_float(t)) throw NotMatched{"vectors are written for floats of one type"};
  const std::string v = variable_type(result);
  std::vector<std::string> wide;
  for (const std::string& x : operands) wide.push_back(fmt::format("({})({})", v, x));
  const std::string expression = vector_expression(node, v, wide);
  if (!expression.empty()) return declare(result, expression);
  // A loop of known length over the scalar function: compilers vectorise it where the function has no branch.
  std::vector<std::string> elements;
  for (const std::string& x : operands) {
    if (!vectors_.count(x)) {
      elements.push_back(x);
      continue;
    }
    const std::string name = fresh("lane");
    line(fmt::format("{} {}[{}];", compute_type(result), name, lanes_));
    line(fmt::format("vstore{}({}, 0, {});", lanes_, x, name));
    elements.push_back(name + "[t]");
  }
  const std::string name = fresh("lane");
  line(fmt::format("{} {}[{}];", compute_type(result), name, lanes_));
  line(fmt::format("for (int t = 0; t < {}; ++t) {}[t] = {};", lanes_, name,
                   scalar_expression(node, types, elements, result)));
  return declare(result, fmt::format("vload{}(0, {})", lanes_, name));
}

}  // namespace thrice::family
