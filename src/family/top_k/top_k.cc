#include "family/top_k/top_k.h"

#include <fmt/format.h>

#include "family/direct.h"
#include "family/scalar.h"

namespace thrice::family {

namespace {

// Text: a comes before b by value alone; NaN counts as the largest.
std::string before(DType dtype, bool largest, const std::string& a, const std::string& b) {
  if (!is_float(dtype)) return fmt::format("{} {} {}", a, largest ? ">" : "<", b);
  return largest ? fmt::format("({0} > {1} || ({0} != {0} && {1} == {1}))", a, b)
                 : fmt::format("({0} < {1} || ({1} != {1} && {0} == {0}))", a, b);
}

class TopKFamily final : public DirectFamily {
 public:
  std::string_view name() const override { return "top_k"; }

 protected:
  std::set<ir::Op> core() const override { return {ir::Op::top_k}; }
  void build(ProgramDraft& draft, const ir::Node& node, int64_t threads) const override {
    Emitter e(draft, "top_k0");
    const ir::ValueId x = node.inputs[0];
    const auto& type = e.graph().value(x).type;
    const auto axis = static_cast<size_t>(node.int_attr("axis"));
    const bool largest = node.int_attr("largest", 1) != 0;
    const int values = output_of(e.graph(), node.outputs[0]);
    const int indices = node.outputs.size() > 1 ? output_of(e.graph(), node.outputs[1]) : -1;
    const ir::ValueId result = node.outputs[values >= 0 ? 0 : 1];
    const std::string n = e.text(e.dim(x, static_cast<int>(axis)));
    const std::string k = e.text(e.dim(result, static_cast<int>(axis)));
    const Index i = open_items(e, ir::num_elements(type.shape), e.elements(x), threads);
    Coords at = e.split(i, x);
    const std::string own = e.value(x, at), place = e.text(at[axis]);
    e.line("int rank = 0;");
    const Index j = e.open_loop("0", n, "1", type.shape[axis]);
    Coords other = at;
    other[axis] = j;
    const std::string v = e.value(x, other);
    e.line(fmt::format("rank += {} || (!{} && {} < {});", before(type.dtype, largest, v, own),
                       "(" + before(type.dtype, largest, own, v) + ")", e.text(j), place));
    e.close();
    e.open(fmt::format("if (rank < {})", k));
    at[axis] = e.index().var("rank");
    if (values >= 0) e.store(static_cast<size_t>(values), at, own);
    if (indices >= 0) e.store(static_cast<size_t>(indices), at, "(th_i64)" + place);
    e.close();
    draft.kernels.push_back(finish_items(e, elements_of(x), threads));
  }
};

}  // namespace

const Family& top_k_family() {
  static const TopKFamily kFamily;
  return kFamily;
}

}  // namespace thrice::family
