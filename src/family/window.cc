#include "family/window.h"

#include <fmt/format.h>

namespace thrice::family {

using ir::Dim;
using ir::ValueId;

Index Window::pad(Emitter& e, size_t axis) const {
  const WindowAxis& a = axes[axis];
  return a.pad_is_const ? e.constant(a.pad) : e.index().extent(a.pad_key, a.pad_source);
}

Index Window::position(Emitter& e, size_t axis, Index out, Index tap) const {
  const WindowAxis& a = axes[axis];
  IndexTable& t = e.index();
  const Index at = t.add(t.mul(out, e.constant(a.stride)), t.mul(tap, e.constant(a.dilation)));
  return t.sub(at, pad(e, axis));
}

std::string Window::inside(Emitter& e, const std::vector<Index>& positions) const {
  std::string all;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].always_inside) continue;
    const std::string p = e.text(positions[a]),
                      n = e.text(e.index().extent(axes[a].in.dim, axes[a].in.source));
    // One unsigned comparison tells both sides.
    all += fmt::format("{}(th_u32){} < (th_u32){}", all.empty() ? "" : " && ", p, n);
  }
  return all;
}

Window make_window(const ir::Graph& graph, const ir::Node& node, ValueId weights) {
  const ValueId x = node.inputs[0];
  ValueId y = ir::kNoValue;
  for (const ValueId v : node.outputs)
    if (y == ir::kNoValue) y = v;
  const auto& shape = graph.value(x).type.shape;
  const size_t count = shape.size() - 2;
  const auto ints = [&](const char* name, size_t n, int64_t otherwise) {
    return node.has_attr(name) ? node.ints_attr(name) : std::vector<int64_t>(n, otherwise);
  };
  const auto strides = ints("strides", count, 1), dilations = ints("dilations", count, 1),
             pads = ints("pads", 2 * count, 0);
  const std::string auto_pad = node.string_attr("auto_pad", "notset");
  const bool same = auto_pad == "same_upper" || auto_pad == "same_lower";
  const bool ceils = node.int_attr("ceil_mode", 0) != 0;
  Window window;
  for (size_t k = 0; k < count; ++k) {
    WindowAxis a;
    const int axis = static_cast<int>(k) + 2;
    a.stride = strides[k];
    a.dilation = dilations[k];
    a.in = {shape[k + 2], extent_of(x, axis)};
    a.out = {graph.value(y).type.shape[k + 2], extent_of(y, axis)};
    if (weights != ir::kNoValue) {
      a.kernel = {graph.value(weights).type.shape[k + 2], extent_of(weights, axis)};
    } else {
      const int64_t n = node.ints_attr("kernel")[k];
      a.kernel = {Dim(n), [n](const Facts&) { return n; }};
    }
    a.pad = auto_pad == "valid" ? 0 : pads[k];
    const int64_t end = auto_pad == "valid" ? 0 : pads[k + count];
    const bool one = a.kernel.dim.is_const() && a.kernel.dim.value() == 1;
    a.always_inside = same ? one : a.pad <= 0 && end <= 0 && !ceils;
    a.end_source = [end](const Facts&) { return end; };
    if (same) {
      a.end_source = [in = a.in.source, kernel = a.kernel.source, stride = a.stride, dilation = a.dilation,
                      auto_pad](const Facts& f) {
        return ir::resolve_pads(auto_pad, in(f), kernel(f), stride, dilation, 0, 0).second;
      };
      const auto resolve = [in = a.in.source, kernel = a.kernel.source, stride = a.stride,
                            dilation = a.dilation, auto_pad](const Facts& f) {
        return ir::resolve_pads(auto_pad, in(f), kernel(f), stride, dilation, 0, 0).first;
      };
      if (a.in.dim.is_const() && a.kernel.dim.is_const()) {
        a.pad = ir::resolve_pads(auto_pad, a.in.dim.value(), a.kernel.dim.value(), a.stride, a.dilation, 0, 0)
                    .first;
      } else {
        a.pad_is_const = false;
        a.pad_source = resolve;
        a.pad_key = fmt::format("pad {} of {}", k, y);
      }
    }
    window.axes.push_back(std::move(a));
  }
  return window;
}

Extent product_of(const ir::Graph& graph, ValueId value, int first, int last) {
  Dim all(1);
  for (int k = first; k < last; ++k) all = all * graph.value(value).type.shape[static_cast<size_t>(k)];
  return {all, [value, first, last](const Facts& facts) {
            int64_t n = 1;
            for (int k = first; k < last; ++k) n *= extent_at(facts, value, k);
            return n;
          }};
}

}  // namespace thrice::family
