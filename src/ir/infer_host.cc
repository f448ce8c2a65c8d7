// Types of host operators. An extent that depends on data is a fresh symbol.
#include <algorithm>

#include "ir/infer_rules.h"

namespace thrice::ir {
namespace {

Fact fact(DType dtype, Shape shape) { return Fact{{dtype, std::move(shape)}, nullptr, std::nullopt}; }

Fact shape_of(const InferContext& c) {
  const int64_t rank = c.rank(0);
  const auto clamp = [rank](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = clamp(c.node.int_attr("start", 0)), end = clamp(c.node.int_attr("end", rank));
  Fact result = fact(DType::kI64, {std::max<int64_t>(end - start, 0)});
  result.known.emplace();
  for (int64_t i = start; i < end; ++i) result.known->push_back(c.shape(0)[static_cast<size_t>(i)]);
  return result;
}

std::vector<Fact> unique(const InferContext& c) {
  const Dim count = c.fresh(0, 0);
  Shape values{count};
  Dim all = num_elements(c.shape(0));
  if (c.node.has_attr("axis")) {
    const size_t axis = c.axis("axis", c.rank(0));
    all = c.shape(0)[axis];
    values = c.shape(0);
    values[axis] = count;
  }
  return {fact(c.dtype(0), values), fact(DType::kI64, {count}), fact(DType::kI64, {all}),
          fact(DType::kI64, {count})};
}

Fact compress(const InferContext& c) {
  c.require(c.dtype(1) == DType::kBool && c.rank(1) == 1, "the condition is no bool vector");
  if (!c.node.has_attr("axis")) return fact(c.dtype(0), {c.fresh(0, 0)});
  Shape shape = c.shape(0);
  const size_t axis = c.axis("axis", c.rank(0));
  shape[axis] = c.fresh(0, axis);
  return fact(c.dtype(0), std::move(shape));
}

Fact random(const InferContext& c) {
  const std::string kind = c.node.string_attr("kind", "normal");
  const bool from_data = kind == "bernoulli" || kind == "multinomial";
  const DType otherwise = kind == "bernoulli"     ? c.dtype(0)
                          : kind == "multinomial" ? DType::kI32
                                                  : DType::kF32;
  const auto dtype = static_cast<DType>(c.node.int_attr("dtype", static_cast<int64_t>(otherwise)));
  if (kind == "bernoulli") return fact(dtype, c.shape(0));
  if (from_data) {
    c.require(c.rank(0) == 2, "multinomial needs [n, classes]");
    return fact(dtype, {c.shape(0)[0], c.node.int_attr("sample_size", 1)});
  }
  const int64_t length = c.shape_operand_length(0);
  if (auto known = c.known(0)) return fact(dtype, *known);
  Shape shape;
  for (int64_t i = 0; i < length; ++i) shape.push_back(c.fresh(0, static_cast<size_t>(i)));
  return fact(dtype, std::move(shape));
}

// Types that the node itself tells (docs/ops.md).
std::vector<Fact> declared_results(const InferContext& c) {
  const std::vector<int64_t>& dtypes = c.node.ints_attr("dtypes");
  const std::vector<int64_t> like = c.ints("shape_of", dtypes.size(), -1),
                             ranks = c.ints("ranks", dtypes.size(), 0);
  std::vector<Fact> results;
  for (size_t o = 0; o < dtypes.size(); ++o) {
    c.require(dtypes[o] >= 0 && dtypes[o] < kNumDTypes, "a result has a type that does not exist");
    Shape shape;
    if (like[o] >= 0) {
      shape = c.shape(static_cast<size_t>(like[o]));
    } else {
      for (int64_t i = 0; i < ranks[o]; ++i) shape.push_back(c.fresh(o, static_cast<size_t>(i)));
    }
    results.push_back(fact(static_cast<DType>(dtypes[o]), std::move(shape)));
  }
  return results;
}

std::vector<Fact> host_function(const InferContext& c) {
  const std::string name = c.node.string_attr("name", "");
  Shape shape = c.shape(0);
  if (name == "StringConcat") return {fact(DType::kString, broadcast_shapes(c, shape, c.shape(1)))};
  if (name == "RegexFullMatch") return {fact(DType::kBool, shape)};
  if (name == "LabelEncoder") return {fact(c.dtype(2), shape)};
  if (name == "StringSplit") {
    Fact counts = fact(DType::kI64, shape);
    shape.push_back(c.fresh(0, shape.size()));
    return {fact(DType::kString, std::move(shape)), std::move(counts)};
  }
  if (name == "StringNormalizer" || name == "TfIdfVectorizer") {
    c.require(!shape.empty(), "needs rank 1 or 2");
    const size_t last = shape.size() - 1;
    if (name == "StringNormalizer") {
      shape[last] = c.fresh(0, last);
      return {fact(DType::kString, std::move(shape))};
    }
    int64_t columns = 0;  // one a distinct number in ngram_indexes
    for (int64_t i : c.node.ints_attr("ngram_indexes")) columns = std::max(columns, i + 1);
    shape[last] = columns;
    return {fact(DType::kF32, std::move(shape))};
  }
  return declared_results(c);
}

}  // namespace

std::vector<Fact> infer_host(const InferContext& c) {
  switch (c.node.op) {
    case Op::shape:
      return {shape_of(c)};
    case Op::nonzero:
      return {fact(DType::kI64, {c.rank(0), c.fresh(0, 1)})};
    case Op::unique:
      return unique(c);
    case Op::compress:
      return {compress(c)};
    case Op::non_max_suppression:
      return {fact(DType::kI64, {c.fresh(0, 0), 3})};
    case Op::det:
      c.require(c.rank(0) >= 2, "needs matrices");
      return {fact(c.dtype(0), Shape(c.shape(0).begin(), c.shape(0).end() - 2))};
    case Op::random:
      return {random(c)};
    case Op::host_function:
      return host_function(c);
    default:
      throw Error(Code::kInternal, fmt::format("{} is no host operator", op_name(c.node.op)));
  }
}

}  // namespace thrice::ir
