// Einsum: terms are contracted from left to right. A pair of terms becomes a matrix product over
// [batch labels, free labels, summed labels]; labels of one term alone are summed before.
#include <algorithm>
#include <map>
#include <set>

#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

// A label is a letter; the axes of an ellipsis are digits counted from the last one, '0' the last.
struct Term {
  Expr value;
  std::string labels;
};

std::string without_spaces(const std::string& text) {
  std::string kept;
  for (char c : text)
    if (c != ' ') kept += c;
  return kept;
}

// Replaces "..." by as many digits as the term has axes without letters.
std::string spell_out(NodeContext& ctx, const std::string& text, int64_t rank) {
  const size_t dots = text.find("...");
  if (dots == std::string::npos) {
    if (static_cast<int64_t>(text.size()) != rank) ctx.invalid("the equation does not fit an operand's rank");
    return text;
  }
  const int64_t hidden = rank - static_cast<int64_t>(text.size()) + 3;
  if (hidden < 0 || hidden > 10) ctx.invalid("the equation does not fit an operand's rank");
  std::string digits;
  for (int64_t i = hidden; i > 0; --i) digits += static_cast<char>('0' + i - 1);
  return text.substr(0, dots) + digits + text.substr(dots + 3);
}

// Takes the diagonal where a label stands twice in one term: elements off it are zeroed and the second axis
// summed.
Term with_distinct_labels(Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    size_t j;
    while ((j = term.labels.find(term.labels[i], i + 1)) != std::string::npos) {
      NodeContext& ctx = term.value.ctx();
      const int64_t rank = term.value.rank(), a = static_cast<int64_t>(i), b = static_cast<int64_t>(j);
      const Expr same =
          equal(iota_along(ctx, term.value.dim(a), a, rank), iota_along(ctx, term.value.dim(b), b, rank));
      term.value = reduce(where(same, term.value, 0.0), "sum", {b}, false);
      term.labels.erase(j, 1);
    }
  }
  return term;
}

// Sums the labels that nobody else needs.
Term summed_to(const Term& term, const std::string& needed) {
  std::vector<int64_t> axes;
  std::string kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (needed.find(term.labels[i]) == std::string::npos)
      axes.push_back(static_cast<int64_t>(i));
    else
      kept += term.labels[i];
  }
  if (axes.empty()) return term;
  const Expr total = reduce(widened(term.value), "sum", axes, false);
  return {cast(total, term.value.dtype()), kept};
}

Term ordered(const Term& term, const std::string& labels) {
  std::vector<int64_t> perm;
  for (char label : labels) perm.push_back(static_cast<int64_t>(term.labels.find(label)));
  return {transpose(term.value, perm), labels};
}

using Extents = std::map<char, Dim>;

// Extent of each label; an ellipsis axis of length 1 broadcasts.
void collect(Extents& extents, const Term& term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    const Dim extent = term.value.dim(static_cast<int64_t>(i));
    const auto found = extents.find(term.labels[i]);
    if (found == extents.end() || found->second == Dim(1)) extents.insert_or_assign(term.labels[i], extent);
  }
}

ir::Shape shape_of(const Extents& extents, const std::string& labels) {
  ir::Shape shape;
  for (char label : labels) shape.push_back(extents.at(label));
  return shape;
}

// Term as [batch..., rows, columns]; an axis of length 1 that broadcasts is first made long.
Expr as_matrix(const Term& term, const Extents& extents, const std::string& batch, const std::string& rows,
               const std::string& columns) {
  const Term sorted = ordered(term, batch + rows + columns);
  const Expr full = expand(sorted.value, shape_of(extents, sorted.labels));
  ir::Shape shape = shape_of(extents, batch);
  shape.push_back(ir::num_elements(shape_of(extents, rows)));
  shape.push_back(ir::num_elements(shape_of(extents, columns)));
  return reshape(full, shape);
}

Term contract(const Term& a, const Term& b, const std::string& needed) {
  const auto holds = [](const std::string& labels, char label) {
    return labels.find(label) != std::string::npos;
  };
  const Term left = summed_to(a, needed + b.labels), right = summed_to(b, needed + a.labels);
  Extents extents;
  collect(extents, left);
  collect(extents, right);
  std::string batch, rows, columns, sum;
  for (char label : left.labels) {
    if (!holds(right.labels, label))
      rows += label;
    else
      (holds(needed, label) ? batch : sum) += label;
  }
  for (char label : right.labels)
    if (!holds(left.labels, label)) columns += label;
  const std::string labels = batch + rows + columns;
  const DType dtype = left.value.dtype();
  const bool product = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
                       dtype == DType::kBF16 || dtype == DType::kI32 || dtype == DType::kI64 ||
                       dtype == DType::kU32 || dtype == DType::kU64;
  if (product && !sum.empty()) {
    const Expr y =
        matmul(as_matrix(left, extents, batch, rows, sum), as_matrix(right, extents, batch, sum, columns));
    return {reshape(y, shape_of(extents, labels)), labels};
  }
  // Without a sum (or with 8-bit integers) it is a broadcast product.
  const auto spread = [&](const Term& term) {
    std::string own;
    std::vector<int64_t> missing;
    const std::string all = labels + sum;
    for (size_t i = 0; i < all.size(); ++i) {
      if (holds(term.labels, all[i]))
        own += all[i];
      else
        missing.push_back(static_cast<int64_t>(i));
    }
    return unsqueeze(ordered(term, own).value, missing);
  };
  return summed_to({spread(left) * spread(right), labels + sum}, labels);
}

void einsum(NodeContext& ctx) {
  const std::string equation = without_spaces(ctx.string_attr("equation", ""));
  const size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<Term> terms;
  size_t begin = 0, widest = 0;
  std::map<char, int> seen;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    if (begin > left.size()) ctx.invalid("the equation has fewer terms than operands");
    const size_t comma = std::min(left.find(',', begin), left.size());
    const Expr x = in(ctx, i);
    const std::string labels = spell_out(ctx, left.substr(begin, comma - begin), x.rank());
    size_t hidden = 0;
    for (char label : labels) {
      ++seen[label];
      if (label >= '0' && label <= '9') ++hidden;
    }
    widest = std::max(widest, hidden);
    terms.push_back(with_distinct_labels({x, labels}));
    begin = comma + 1;
  }
  if (terms.empty() || begin <= left.size()) ctx.invalid("the equation has more terms than operands");
  std::string digits, result;
  for (size_t i = widest; i > 0; --i) digits += static_cast<char>('0' + i - 1);
  if (arrow == std::string::npos) {
    result = digits;  // without "->": labels that stand once, sorted
    for (const auto& [label, times] : seen)
      if (times == 1 && !(label >= '0' && label <= '9')) result += label;
  } else {
    const std::string right = equation.substr(arrow + 2);
    const size_t dots = right.find("...");
    result = dots == std::string::npos ? right : right.substr(0, dots) + digits + right.substr(dots + 3);
  }
  for (char label : result)
    if (seen[label] == 0) ctx.invalid("a label of the result stands in no operand");
  Term total = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string needed = result;
    for (size_t j = i + 1; j < terms.size(); ++j) needed += terms[j].labels;
    total = contract(total, terms[i], needed);
  }
  const Expr y = ordered(summed_to(total, result), result).value;
  out(ctx, 0, y.id() == ctx.input(0) ? emit(Op::identity, y) : y);
}

}  // namespace

std::vector<OperatorImport> einsum_imports() { return {{"", "Einsum", 12, einsum}}; }

}  // namespace thrice::frontend::onnx
