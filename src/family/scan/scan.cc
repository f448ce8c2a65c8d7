#include "family/scan/scan.h"

#include <fmt/format.h>

#include "family/direct.h"
#include "family/scalar.h"
#include "ir/delta_rule.h"

namespace thrice::family {

namespace {

class ScanFamily final : public DirectFamily {
 public:
  std::string_view name() const override { return "scan"; }

 protected:
  std::set<ir::Op> core() const override { return {ir::Op::scan_sum}; }
  void build(ProgramDraft& draft, const ir::Node& node, int64_t threads) const override {
    if (ir::is_delta_rule(node)) throw NotMatched{"a delta rule has a family of its own"};
    Emitter e(draft, "scan0");
    const ir::ValueId x = node.inputs[0];
    const auto& type = e.graph().value(x).type;
    const auto axis = static_cast<size_t>(node.int_attr("axis"));
    const std::string kind = node.string_attr("kind", "sum");
    std::vector<Index> dims = e.dims(x);
    ir::Dim lines(1);
    for (size_t a = 0; a < dims.size(); ++a)
      if (a != axis) lines = lines * type.shape[a];
    const Source count = [x, axis](const Facts& f) {
      int64_t n = 1;
      const auto& shape = f[static_cast<size_t>(x)].type.shape;
      for (size_t a = 0; a < shape.size(); ++a)
        if (a != axis) n *= shape[a].value();
      return n;
    };
    const std::string n = e.text(dims[axis]);
    const Index i = open_items(e, lines, e.index().extent(lines, count), threads);
    dims[axis] = e.constant(1);
    Coords at = e.index().split(i, dims);
    e.line(fmt::format("{} acc = {};", compute_type(type.dtype), neutral(kind, type.dtype)));
    const Index j = e.open_loop("0", n, "1", type.shape[axis]);
    at[axis] = j;
    if (node.int_attr("reverse", 0) != 0) at[axis] = e.declare_int(fmt::format("{} - 1 - {}", n, e.text(j)));
    const std::string next = e.declare(type.dtype, combine(kind, type.dtype, "acc", e.value(x, at)));
    e.store(0, at, node.int_attr("exclusive", 0) != 0 ? "acc" : next);
    e.line(fmt::format("acc = {};", next));
    e.close();
    draft.kernels.push_back(finish_items(e, count, threads));
  }
};

}  // namespace

const Family& scan_family() {
  static const ScanFamily kFamily;
  return kFamily;
}

}  // namespace thrice::family
