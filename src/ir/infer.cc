#include "ir/infer.h"

#include <algorithm>

#include "ir/infer_rules.h"

namespace thrice::ir {

const Fact& InferContext::in(size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  return *operands[i];
}

std::optional<std::vector<Dim>> known_of(const Fact& fact) {
  if (fact.known) return fact.known;
  const Tensor* t = fact.constant;
  if (!t || t->size() > kMaxKnown || !(is_integer(t->dtype()) || t->dtype() == DType::kBool))
    return std::nullopt;
  std::vector<Dim> elements;
  for (int64_t i = 0; i < t->size(); ++i) elements.emplace_back(t->as_int(i));
  return elements;
}

std::optional<std::vector<Dim>> InferContext::known(size_t i) const {
  return has(i) ? known_of(*operands[i]) : std::nullopt;
}

int64_t InferContext::shape_operand_length(size_t i) const {
  if (dtype(i) != DType::kI64 && dtype(i) != DType::kI32)
    fail(fmt::format("operand {} is {}, expected an i64 vector", i, dtype_name(dtype(i))));
  if (rank(i) > 1) fail(fmt::format("operand {} has rank {}, expected a vector", i, rank(i)));
  const Dim count = num_elements(shape(i));
  if (!count.is_const())
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: operand {} decides a shape, and its own length {} is not known; fix the extents "
                    "that it comes from",
                    op_name(node.op), i, count.str()));
  return count.value();
}

std::optional<std::vector<double>> InferContext::numbers(size_t i) const {
  if (!has(i) || !operands[i]->constant) return std::nullopt;
  std::vector<double> values;
  for (int64_t k = 0; k < operands[i]->constant->size(); ++k)
    values.push_back(operands[i]->constant->as_double(k));
  return values;
}

Dim InferContext::fresh(size_t output, size_t axis) const {
  return fresh_symbol(fmt::format("{}.{}.{}", op_name(node.op), output, axis));
}

size_t InferContext::axis(const std::string& key, int64_t rank) const {
  const int64_t axis = node.int_attr(key);
  if (axis < 0 || axis >= rank) fail(fmt::format("{} {} is outside rank {}", key, axis, rank));
  return static_cast<size_t>(axis);
}

std::vector<int64_t> InferContext::ints(const std::string& key, size_t count, int64_t otherwise) const {
  if (!node.has_attr(key)) return std::vector<int64_t>(count, otherwise);
  const std::vector<int64_t>& values = node.ints_attr(key);
  if (values.size() != count)
    fail(fmt::format("attribute {} has {} entries, expected {}", key, values.size(), count));
  return values;
}

void InferContext::require(bool condition, const char* what) const {
  if (!condition) fail(what);
}

void InferContext::require_same_dtype(size_t i, size_t j) const {
  if (dtype(i) != dtype(j))
    fail(fmt::format("operands {} and {} have types {} and {}", i, j, dtype_name(dtype(i)),
                     dtype_name(dtype(j))));
}

void InferContext::fail(const std::string& what) const {
  throw Error(Code::kInvalidModel, fmt::format("{}: {}", op_name(node.op), what));
}

Shape broadcast_shapes(const InferContext& c, const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t skip = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const Dim &x = longer[skip + i], &y = shorter[i];
    if (x.is_const() && y.is_const() && x != y && x != 1 && y != 1)
      c.fail(fmt::format("shapes {} and {} do not broadcast", shape_str(a), shape_str(b)));
    result[skip + i] = broadcast(x, y);
  }
  return result;
}

Dim unify(const InferContext& c, const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a.is_const() && b.is_const()) c.fail(fmt::format("extents {} and {} must be equal", a.str(), b.str()));
  return b.is_const() ? b : a;
}

bool is_shape_operand(const Node& node, size_t index) {
  switch (node.op) {
    case Op::iota:
      return index == 0;
    case Op::reshape:
    case Op::expand:
    case Op::pad:
    case Op::tile:
    case Op::top_k:
      return index == 1;
    case Op::slice:
    case Op::resize:
      return index >= 1;
    case Op::random: {
      const std::string kind = node.string_attr("kind", "normal");
      return index == 0 && (kind == "normal" || kind == "uniform");
    }
    default:
      return false;
  }
}

namespace {

std::vector<Fact> infer_by_class(const InferContext& c) {
  switch (c.node.op) {
    case Op::conv:
    case Op::conv_transpose:
    case Op::pool:
    case Op::resize:
    case Op::grid_sample:
    case Op::roi_align:
      return infer_spatial(c);
    default:
      break;
  }
  switch (op_class(c.node.op)) {
    case OpClass::kUnary:
    case OpClass::kBinary:
    case OpClass::kTernary:
      return infer_elementwise(c);
    case OpClass::kView:
      return infer_view(c);
    case OpClass::kReduce:
      return infer_reduce(c);
    case OpClass::kHeavy:
      return infer_heavy(c);
    case OpClass::kHost:
      return infer_host(c);
    case OpClass::kControl:
      return infer_control(c, "body.", nullptr);
  }
  throw Error(Code::kInternal, "an operator without a class");
}

}  // namespace

std::vector<Fact> infer_node(const Node& node, const std::vector<const Fact*>& operands,
                             const std::function<Dim(const std::string& hint)>& fresh_symbol) {
  const InferContext c{node, operands, fresh_symbol};
  std::vector<Fact> results = infer_by_class(c);
  for (size_t o = 0; o < results.size(); ++o)
    for (const Dim& d : results[o].type.shape)
      if (d.is_const() && d.value() < 0)
        c.fail(fmt::format("result {} would have shape {}", o, shape_str(results[o].type.shape)));
  if (op_class(node.op) != OpClass::kControl && !results.empty() && !results[0].known)
    results[0].known = infer_known(c, results[0].type);
  if (results.size() < node.outputs.size())
    c.fail(fmt::format("has {} results, the node names {}", results.size(), node.outputs.size()));
  results.resize(node.outputs.size());
  return results;
}

SliceRange resolve_slice(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (step == 0) throw Error(Code::kInvalidModel, "slice: a step is zero");
  // start + extent cannot overflow: start < 0 <= extent.
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  // Forward ranges lie in [0, extent], backward ones in [-1, extent - 1].
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  start = std::min(std::max(start, step > 0 ? low : int64_t{0}), std::max(high, int64_t{0}));
  end = std::min(std::max(end, low), high);
  if (extent == 0) return {0, step, 0};
  const int64_t distance = step > 0 ? end - start : start - end;
  if (distance <= 0) return {start, step, 0};
  // -(step + 1) + 1 would overflow for INT64_MIN; one element fits any step that long.
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const auto length = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride + 1);
  return {start, step, length};
}

std::pair<int64_t, int64_t> resolve_pads(const std::string& auto_pad, int64_t extent, int64_t kernel,
                                         int64_t stride, int64_t dilation, int64_t begin, int64_t end) {
  if (auto_pad == "valid") return {0, 0};
  if (auto_pad != "same_upper" && auto_pad != "same_lower") return {begin, end};
  const int64_t out = (extent + stride - 1) / stride;
  const int64_t reach = (out - 1) * stride + (kernel - 1) * dilation + 1;
  const int64_t total = std::max<int64_t>(reach - extent, 0);
  const int64_t less = total / 2;
  return auto_pad == "same_upper" ? std::pair{less, total - less} : std::pair{total - less, less};
}

}  // namespace thrice::ir
