#include "family/scatter/scatter.h"

#include <fmt/format.h>

#include "family/direct.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

namespace {

// Extents [begin, end) of a value, less one axis.
Source product_of(ValueId value, size_t begin, size_t end, size_t without) {
  return [=](const Facts& f) {
    int64_t n = 1;
    for (size_t a = begin; a < end; ++a)
      if (a != without) n *= extent_at(f, value, static_cast<int>(a));
    return n;
  };
}

class ScatterFamily final : public DirectFamily {
 public:
  std::string_view name() const override { return "scatter"; }

 protected:
  std::set<ir::Op> core() const override { return {ir::Op::scatter_elements, ir::Op::scatter_nd}; }

  void build(ProgramDraft& draft, const ir::Node& node, int64_t threads) const override {
    {
      Emitter e(draft, "scatter_copy");
      const ValueId x = node.inputs[0];
      const Index i = open_items(e, ir::num_elements(e.graph().value(x).type.shape), e.elements(x), threads);
      const Coords at = e.split(i, x);
      e.store(0, at, e.value(x, at));
      draft.kernels.push_back(finish_items(e, elements_of(x), threads));
    }
    if (node.op == ir::Op::scatter_elements)
      elements(draft, node, threads);
    else
      tuples(draft, node, threads);
  }

 private:
  static void update(Emitter& e, const ProgramDraft& draft, const ir::Node& node, const Coords& target,
                     const std::string& element) {
    const std::string reduction = node.string_attr("reduction", "none");
    const ValueId y = node.outputs[0];
    const DType dtype = e.graph().value(y).type.dtype;
    std::string stored = element;
    if (reduction != "none") {
      const std::string kind = reduction == "add" ? "sum" : reduction == "mul" ? "prod" : reduction;
      const std::string old =
          e.load(draft.output_name(0), dtype, e.text(e.index().linear(target, e.dims(y))));
      stored = e.declare(dtype, combine(kind, dtype, old, element));
    }
    e.store(0, target, stored);
  }

  // Lines of the indices along the axis never meet: one work-item walks one line, in order.
  static void elements(ProgramDraft& draft, const ir::Node& node, int64_t threads) {
    Emitter e(draft, "scatter_update");
    const ValueId x = node.inputs[0], indices = node.inputs[1], updates = node.inputs[2];
    const auto axis = static_cast<size_t>(node.int_attr("axis", 0));
    const auto& shape = e.graph().value(indices).type.shape;
    Dim lines(1);
    for (size_t a = 0; a < shape.size(); ++a)
      if (a != axis) lines = lines * shape[a];
    const Source count = product_of(indices, 0, shape.size(), axis);
    std::vector<Index> dims = e.dims(indices);
    const std::string n = e.text(dims[axis]), extent = e.text(e.dim(x, static_cast<int>(axis)));
    const Index i = open_items(e, lines, e.index().extent(lines, count), threads);
    dims[axis] = e.constant(1);
    Coords at = e.index().split(i, dims);
    at[axis] = e.open_loop("0", n, "1", shape[axis]);
    const Index to =
        e.declare_int(fmt::format("th_index_or_none((th_i64){}, {})", e.value(indices, at), extent));
    e.open(fmt::format("if ({} >= 0)", e.text(to)));
    Coords target = at;
    target[axis] = to;
    update(e, draft, node, target, e.value(updates, at));
    e.close();
    e.close();
    draft.kernels.push_back(finish_items(e, count, threads));
  }

  // One work-item owns one place within the slices and walks all tuples in order.
  static void tuples(ProgramDraft& draft, const ir::Node& node, int64_t threads) {
    Emitter e(draft, "scatter_update");
    const ValueId x = node.inputs[0], indices = node.inputs[1], updates = node.inputs[2];
    const auto& xs = e.graph().value(x).type.shape;
    const auto& is = e.graph().value(indices).type.shape;
    if (!is.back().is_const()) throw NotMatched{"scatter_nd with an index length known only at run time"};
    const auto depth = static_cast<size_t>(is.back().value());
    const size_t lead = is.size() - 1;
    Dim places(1), count(1);
    std::vector<Index> place_dims, tuple_dims;
    for (size_t a = depth; a < xs.size(); ++a) {
      places = places * xs[a];
      place_dims.push_back(e.dim(x, static_cast<int>(a)));
    }
    for (size_t a = 0; a < lead; ++a) {
      count = count * is[a];
      tuple_dims.push_back(e.dim(indices, static_cast<int>(a)));
    }
    const Source place_count = product_of(x, depth, xs.size(), xs.size());
    const std::string n = e.text(e.index().extent(count, product_of(indices, 0, lead, lead)));
    std::vector<std::string> extents;
    for (size_t k = 0; k < depth; ++k) extents.push_back(e.text(e.dim(x, static_cast<int>(k))));
    const Index i = open_items(e, places, e.index().extent(places, place_count), threads);
    const Coords place = e.index().split(i, place_dims);
    const Index q = e.open_loop("0", n, "1", count);
    Coords at = e.index().split(q, tuple_dims), target;
    Coords from = at;
    std::string inside = "1";
    at.push_back({});
    for (size_t k = 0; k < depth; ++k) {
      at.back() = e.constant(static_cast<int64_t>(k));
      const Index to =
          e.declare_int(fmt::format("th_index_or_none((th_i64){}, {})", e.value(indices, at), extents[k]));
      target.push_back(to);
      inside += fmt::format(" && {} >= 0", e.text(to));
    }
    e.open(fmt::format("if ({})", inside));
    from.insert(from.end(), place.begin(), place.end());
    target.insert(target.end(), place.begin(), place.end());
    update(e, draft, node, target, e.value(updates, from));
    e.close();
    e.close();
    draft.kernels.push_back(finish_items(e, place_count, threads));
  }
};

}  // namespace

const Family& scatter_family() {
  static const ScatterFamily kFamily;
  return kFamily;
}

}  // namespace thrice::family
