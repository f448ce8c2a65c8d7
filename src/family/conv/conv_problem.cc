#include "family/conv/conv_problem.h"

#include <fmt/format.h>

#include "family/gemm_library.h"
#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::Op;
using ir::ValueId;

namespace {

bool is_const(const Dim& d, int64_t value) { return d.is_const() && d.value() == value; }

Extent divided(const Extent& extent, int64_t by) {
  return {ir::floor_div(extent.dim, by), [s = extent.source, by](const Facts& f) { return s(f) / by; }};
}

Extent times(const Extent& extent, int64_t by) {
  return {extent.dim * Dim(by), [s = extent.source, by](const Facts& f) { return s(f) * by; }};
}

Extent multiplied(const Extent& a, const Extent& b) {
  return {a.dim * b.dim, [s = a.source, t = b.source](const Facts& f) { return s(f) * t(f); }};
}

Index index_of(Emitter& e, const Extent& extent) { return e.index().extent(extent.dim, extent.source); }

// Image and group of a batch index z = n * group + g.
std::pair<Index, Index> split_z(Emitter& e, const ConvProblem& conv, Index z) {
  if (conv.group == 1) return {z, e.constant(0)};
  const Index g = e.constant(conv.group);
  return {e.index().div(z, g), e.index().mod(z, g)};
}

// Channel of a group as a channel of the tensor.
Index channel(Emitter& e, Index g, const Extent& per_group, Index inner) {
  return e.index().add(e.index().mul(g, index_of(e, per_group)), inner);
}

// Element of x at spatial positions, zero outside; the branch is left out where no window leaves the input.
std::string guarded_x(Emitter& e, const ConvProblem& conv, Index n, Index c,
                      const std::vector<Index>& positions) {
  Coords at{n, c};
  at.insert(at.end(), positions.begin(), positions.end());
  const std::string inside = conv.window.inside(e, positions);
  if (inside.empty()) return e.value(conv.x, at);
  const std::string name = e.fresh("x");
  e.line(fmt::format("{} {} = {};", compute_type(conv.dtype), name, zero_of(conv.dtype)));
  e.open(fmt::format("if ({})", inside));
  e.line(fmt::format("{} = {};", name, e.value(conv.x, at)));
  e.close();
  return name;
}

std::vector<Index> kernel_dims(Emitter& e, const ConvProblem& conv) {
  std::vector<Index> dims;
  for (const auto& a : conv.window.axes) dims.push_back(index_of(e, a.kernel));
  return dims;
}

Coords joined(Coords head, const Coords& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

}  // namespace

bool ConvProblem::is_depthwise() const { return !transposed && is_const(group_channels.dim, 1) && group > 1; }

bool ConvProblem::is_pointwise() const {
  if (transposed) return false;
  for (const auto& a : window.axes)
    if (!is_const(a.kernel.dim, 1) || a.stride != 1 || !a.always_inside || !(a.pad_is_const && a.pad == 0))
      return false;
  return true;
}

bool ConvProblem::is_subpixel() const {
  if (!transposed || region.op->has_attr("output_shape")) return false;
  if (region.op->has_attr("output_padding"))
    for (const int64_t extra : region.op->ints_attr("output_padding"))
      if (extra != 0) return false;
  const std::string auto_pad = region.op->string_attr("auto_pad", "notset");
  if (auto_pad != "notset" && auto_pad != "valid") return false;
  for (const auto& a : window.axes)
    if (!is_const(a.kernel.dim, a.stride) || (a.dilation != 1 && a.stride != 1) || !a.always_inside ||
        a.pad != 0)
      return false;
  return true;
}

ConvProblem make_conv(const Workload& workload) {
  ConvProblem conv;
  conv.region = find_heavy(workload, {Op::conv, Op::conv_transpose});
  const ir::Graph& graph = workload.graph;
  const ir::Node& node = *conv.region.op;
  conv.transposed = node.op == Op::conv_transpose;
  conv.x = node.inputs[0];
  conv.w = node.inputs[1];
  if (node.inputs.size() > 2) conv.bias = node.inputs[2];
  conv.y = node.outputs[0];
  conv.dtype = graph.value(conv.y).type.dtype;
  conv.group = node.int_attr("group", 1);
  const auto& x_shape = graph.value(conv.x).type.shape;
  conv.spatial = x_shape.size() - 2;
  if (conv.spatial < 1 || conv.spatial > 3)
    throw NotMatched{fmt::format("{} spatial axes; kernels are written for 1 to 3", conv.spatial)};
  conv.batch = {graph.value(conv.y).type.shape[0], extent_of(conv.y, 0)};
  conv.outputs = {graph.value(conv.y).type.shape[1], extent_of(conv.y, 1)};
  const auto& w_shape = graph.value(conv.w).type.shape;
  if (conv.transposed) {
    conv.group_channels = divided({x_shape[1], extent_of(conv.x, 1)}, conv.group);
    conv.group_outputs = {w_shape[1], extent_of(conv.w, 1)};
  } else {
    conv.group_channels = {w_shape[1], extent_of(conv.w, 1)};
    conv.group_outputs = divided(conv.outputs, conv.group);
  }
  conv.window = make_window(graph, node, conv.w);
  if (conv.transposed) {  // here the windows slide over the result
    const std::string auto_pad = node.string_attr("auto_pad", "notset");
    const auto extra = node.has_attr("output_padding") ? node.ints_attr("output_padding")
                                                       : std::vector<int64_t>(conv.spatial, 0);
    const bool wanted = node.has_attr("output_shape");
    if (wanted || auto_pad == "same_upper" || auto_pad == "same_lower")
      for (size_t k = 0; k < conv.spatial; ++k) {
        WindowAxis& a = conv.window.axes[k];
        a.pad_is_const = false;
        a.always_inside = false;
        a.pad_key = fmt::format("pad {} of {}", k, conv.y);
        a.pad_source = [in = a.in.source, out = a.out.source, kernel = a.kernel.source, stride = a.stride,
                        dilation = a.dilation, more = extra[k],
                        upper = auto_pad == "same_upper"](const Facts& f) {
          const int64_t full = stride * (in(f)-1) + more + dilation * (kernel(f) - 1) + 1;
          const int64_t total = std::max<int64_t>(0, full - out(f));
          return upper ? total / 2 : total - total / 2;
        };
      }
  }
  return conv;
}

void store_conv(Emitter& e, const ConvProblem& conv, const Coords& at, const std::string& acc) {
  std::string element = acc;
  if (conv.bias != ir::kNoValue) {
    const std::string bias = e.value(conv.bias, {at[1]});
    const std::string u = dtype_bits(conv.dtype) == 64 ? "th_u64" : "th_u32";
    element = e.declare(
        conv.dtype, is_float(conv.dtype)
                        ? fmt::format("{} + {}", acc, bias)
                        : fmt::format("({0})(({1}){2} + ({1}){3})", compute_type(conv.dtype), u, acc, bias));
  }
  emit_epilogue(e, conv.region, at, {element});
}

Extent image_channels(const ConvProblem& conv) { return multiplied(conv.batch, conv.outputs); }

int64_t legal_chunk(const ConvProblem& conv, int64_t chunk) {
  if (chunk < 1 || !conv.group_channels.dim.is_const() || conv.group_channels.dim.value() % chunk != 0)
    return 0;
  bool one_tap = true;
  for (const auto& a : conv.window.axes) one_tap = one_tap && is_const(a.kernel.dim, 1);
  return one_tap ? 0 : chunk;
}

Gemm implicit_gemm(const ProgramDraft& draft, const ConvProblem& conv, int64_t chunk) {
  const ir::Graph& graph = draft.graph();
  const int rank = static_cast<int>(conv.spatial) + 2;
  Gemm g;
  g.dtype = conv.dtype;
  g.batches = {Dim(conv.group), [n = conv.group](const Facts&) { return n; }};
  g.rows = conv.group_outputs;
  g.cols = multiplied(conv.batch, product_of(graph, conv.y, 2, rank));
  g.depth = multiplied(conv.group_channels, product_of(graph, conv.w, 2, rank));
  // Channel of the group, and taps, of a position in the depth.
  const auto tap_of = [conv, chunk](Emitter& e, Index k) {
    std::vector<Index> dims{chunk > 0 ? e.constant(conv.group_channels.dim.value() / chunk)
                                      : index_of(e, conv.group_channels)};
    for (const Index d : kernel_dims(e, conv)) dims.push_back(d);
    if (chunk == 0) return e.index().split(k, dims);
    dims.push_back(e.constant(chunk));
    Coords at = e.index().split(k, dims);
    at[0] = e.index().add(e.index().mul(at[0], e.constant(chunk)), at.back());
    at.pop_back();
    return at;
  };
  const auto w_coords = [conv, tap_of](Emitter& e, Index z, Index m, Index k) {
    return joined({channel(e, z, conv.group_outputs, m)}, tap_of(e, k));
  };
  // Image, channel and positions in x.
  const auto x_coords = [conv, tap_of](Emitter& e, Index z, Index k, Index n) {
    std::vector<Index> place{index_of(e, conv.batch)};
    for (const auto& a : conv.window.axes) place.push_back(index_of(e, a.out));
    const Coords tap = tap_of(e, k), at = e.index().split(n, place);
    Coords x{at[0], channel(e, z, conv.group_channels, tap[0])};
    for (size_t a = 0; a < conv.spatial; ++a) x.push_back(conv.window.position(e, a, at[a + 1], tap[a + 1]));
    return x;
  };
  g.a = [conv, w_coords](Emitter& e, Index z, Index m, Index k) {
    return e.value(conv.w, w_coords(e, z, m, k));
  };
  g.b = [conv, x_coords](Emitter& e, Index z, Index k, Index n) {
    const Coords x = x_coords(e, z, k, n);
    return guarded_x(e, conv, x[0], x[1], {x.begin() + 2, x.end()});
  };
  const auto has_place = [&](ir::ValueId v) {
    return graph.value(v).type.dtype == conv.dtype && is_stored_buffer(draft.workload(), v);
  };
  if (has_place(conv.w)) {
    g.a_place = [conv, w_coords, &draft](Emitter& e, Index z, Index m, Index k) -> GemmPlace {
      return {address(e, draft, conv.w, w_coords(e, z, m, k)), ""};
    };
    g.a_is_weight = graph.value(conv.w).is_weight && is_plain_buffer(draft.workload(), conv.w);
    const bool follows = chunk == 0 && g.depth.dim.is_const();
    g.a_in_fours = follows && g.depth.dim.value() % 4 == 0;
    g.a_in_eights = follows && g.depth.dim.value() % 8 == 0;
  }
  if (has_place(conv.x)) {
    g.b_place = [conv, x_coords, &draft](Emitter& e, Index z, Index k, Index n) -> GemmPlace {
      const Coords x = x_coords(e, z, k, n);
      return {address(e, draft, conv.x, x), conv.window.inside(e, {x.begin() + 2, x.end()})};
    };
    const Dim positions = product_of(graph, conv.y, 2, rank).dim;
    const bool follow = conv.is_pointwise() && positions.is_const();
    g.b_in_fours = follow && positions.value() % 4 == 0;
    g.b_in_eights = follow && positions.value() % 8 == 0;
  }
  g.epilogue = [conv](Emitter& e, Index z, Index m, Index n, const std::string& acc) {
    std::vector<Index> place{index_of(e, conv.batch)};
    for (const auto& a : conv.window.axes) place.push_back(index_of(e, a.out));
    const Coords at = e.index().split(n, place);
    Coords out{at[0], channel(e, z, conv.group_outputs, m)};
    out.insert(out.end(), at.begin() + 1, at.end());
    store_conv(e, conv, out, acc);
  };
  return g;
}

Gemm pointwise_gemm(const ProgramDraft& draft, const ConvProblem& conv) {
  const ir::Graph& graph = draft.graph();
  const int rank = static_cast<int>(conv.spatial) + 2;
  Gemm g;
  g.dtype = conv.dtype;
  g.batches = times(conv.batch, conv.group);
  g.rows = conv.group_outputs;
  g.cols = product_of(graph, conv.y, 2, rank);
  g.depth = conv.group_channels;
  const auto place = [conv](Emitter& e, Index n) {
    std::vector<Index> dims;
    for (const auto& a : conv.window.axes) dims.push_back(index_of(e, a.in));
    return e.index().split(n, dims);
  };
  const auto a_coords = [conv](Emitter& e, Index z, Index m, Index k) {
    const auto [image, group] = split_z(e, conv, z);
    Coords at{channel(e, group, conv.group_outputs, m), k};
    at.resize(conv.spatial + 2, e.constant(0));
    return at;
  };
  const auto b_coords = [conv, place](Emitter& e, Index z, Index k, Index n) {
    const auto [image, group] = split_z(e, conv, z);
    return joined({image, channel(e, group, conv.group_channels, k)}, place(e, n));
  };
  g.a = [conv, a_coords](Emitter& e, Index z, Index m, Index k) {
    return e.value(conv.w, a_coords(e, z, m, k));
  };
  g.b = [conv, b_coords](Emitter& e, Index z, Index k, Index n) {
    return e.value(conv.x, b_coords(e, z, k, n));
  };
  if (is_plain_buffer(draft.workload(), conv.w))
    g.a_along_k = [conv, a_coords, &draft](Emitter& e, Index z, Index m, Index k) {
      return address(e, draft, conv.w, a_coords(e, z, m, k));
    };
  if (is_plain_buffer(draft.workload(), conv.x)) {
    g.b_along_n = [conv, b_coords, &draft](Emitter& e, Index z, Index k, Index n) {
      return address(e, draft, conv.x, b_coords(e, z, k, n));
    };
    if (is_const(g.cols.dim, 1)) g.b_along_k = g.b_along_n;
  }
  if (conv.group == 1) {
    const size_t axes = conv.spatial + 2;
    g.a_matrix = whole_matrix(draft.workload(), conv.w, axes, {});
    g.b_matrix = whole_matrix(draft.workload(), conv.x, axes - 1, {conv.batch.dim});
    if (conv.bias == ir::kNoValue) g.plain_output = plain_output(draft.workload(), conv.y);
  }
  g.epilogue = [conv, place](Emitter& e, Index z, Index m, Index n, const std::string& acc) {
    const auto [image, group] = split_z(e, conv, z);
    store_conv(e, conv, joined({image, channel(e, group, conv.group_outputs, m)}, place(e, n)), acc);
  };
  return g;
}

Gemm subpixel_gemm(const ProgramDraft& draft, const ConvProblem& conv) {
  const ir::Graph& graph = draft.graph();
  const int rank = static_cast<int>(conv.spatial) + 2;
  Gemm g;
  g.dtype = conv.dtype;
  g.batches = times(conv.batch, conv.group);
  g.rows = multiplied(conv.group_outputs, product_of(graph, conv.w, 2, rank));
  g.cols = product_of(graph, conv.x, 2, rank);
  g.depth = conv.group_channels;
  g.a_rows_follow = true;
  const auto place = [conv](Emitter& e, Index n) {
    std::vector<Index> dims;
    for (const auto& a : conv.window.axes) dims.push_back(index_of(e, a.in));
    return e.index().split(n, dims);
  };
  const auto row = [conv](Emitter& e, Index m) {  // output channel of the group, taps
    std::vector<Index> dims{index_of(e, conv.group_outputs)};
    for (const Index d : kernel_dims(e, conv)) dims.push_back(d);
    return e.index().split(m, dims);
  };
  g.a = [conv, row](Emitter& e, Index z, Index m, Index k) {
    const auto [image, group] = split_z(e, conv, z);
    return e.value(conv.w, joined({channel(e, group, conv.group_channels, k)}, row(e, m)));
  };
  const auto b_coords = [conv, place](Emitter& e, Index z, Index k, Index n) {
    const auto [image, group] = split_z(e, conv, z);
    return joined({image, channel(e, group, conv.group_channels, k)}, place(e, n));
  };
  g.b = [conv, b_coords](Emitter& e, Index z, Index k, Index n) {
    return e.value(conv.x, b_coords(e, z, k, n));
  };
  if (is_plain_buffer(draft.workload(), conv.x))
    g.b_along_n = [conv, b_coords, &draft](Emitter& e, Index z, Index k, Index n) {
      return address(e, draft, conv.x, b_coords(e, z, k, n));
    };
  g.epilogue = [conv, place, row](Emitter& e, Index z, Index m, Index n, const std::string& acc) {
    const auto [image, group] = split_z(e, conv, z);
    const Coords taps = row(e, m), at = place(e, n);
    Coords out{image, channel(e, group, conv.group_outputs, taps[0])};
    for (size_t a = 0; a < conv.spatial; ++a)
      out.push_back(e.index().add(e.index().mul(at[a], e.constant(conv.window.axes[a].stride)), taps[a + 1]));
    store_conv(e, conv, out, acc);
  };
  return g;
}

}  // namespace thrice::family
