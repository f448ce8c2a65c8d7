// Kernel text of the convolutions that are not matrix products.
#include <fmt/format.h>

#include <algorithm>

#include "family/choices.h"
#include "family/conv/conv_problem.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

using ir::Dim;

namespace {

Index index_of(Emitter& e, const Extent& extent) { return e.index().extent(extent.dim, extent.source); }

Index tiles(Emitter& e, const std::string& name, const Extent& extent, int64_t tile) {
  if (extent.dim.is_const()) return e.constant(ceil_div(extent.dim.value(), tile));
  return e.index().extent(name, [s = extent.source, tile](const Facts& f) { return ceil_div(s(f), tile); });
}

// A loop over 0 .. extent - 1 with a readable name.
Index open_named(Emitter& e, const std::string& name, const Extent& extent) {
  e.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, e.text(index_of(e, extent))));
  return e.index().var(name, extent.dim);
}

constexpr const char* kTapNames[] = {"r", "s", "u"};

// Function that reads a vector of an input row at a stride; returns its name.
std::string row_reader(Emitter& e, const std::string& name, DType dtype, int64_t lanes, int64_t stride) {
  Template t("opencl/window.cl");
  std::string iota;
  for (int64_t j = 0; j < lanes; ++j) iota += (j ? ", " : "") + std::to_string(j);
  const std::string integer = dtype == DType::kF64 ? "long" : "int";
  t.set("NAME", name).set("T", compute_type(dtype)).set("V", vector_type(dtype, lanes));
  t.set("I", integer + std::to_string(lanes)).set("L", lanes).set("IOTA", iota).set("STRIDE", stride);
  e.preamble(t.section(stride == 1 ? "stride1" : stride == 2 ? "stride2" : "any"));
  return name;
}

// One vector of input row `row_at` (n, c, outer positions): lanes lie `stride` apart from position `first`
// on. Plain buffers are read by vectors; a prologue element by element.
struct RowSource {
  bool plain = false;
  std::string reader, buffer, row, width, total;
  Coords at;  // n, c, outer positions; the last position is appended
};

RowSource make_row(Emitter& e, const ProgramDraft& draft, const ConvProblem& conv, const std::string& reader,
                   const Coords& at) {
  RowSource source;
  source.plain = !reader.empty();
  source.at = at;
  source.reader = reader;
  source.width = e.text(index_of(e, conv.window.axes.back().in));
  if (!source.plain) return source;
  Coords begin = at;
  begin.push_back(e.constant(0));
  source.buffer = draft.input_name(conv.x);
  source.row = e.text(e.index().linear(begin, e.dims(conv.x)));
  source.total = e.text(e.elements(conv.x));
  return source;
}

void load_vector(Emitter& e, const ConvProblem& conv, const RowSource& source, const std::string& name,
                 const std::string& first, int64_t lanes) {
  const std::string vector = vector_type(conv.dtype, lanes);
  if (source.plain) {
    e.line(fmt::format("const {} {} = {}({}, {}, {}, {}, {});", vector, name, source.reader, source.buffer,
                       source.row, first, source.width, source.total));
    return;
  }
  const std::string line = "line_" + name;
  e.line(fmt::format("{} {}[{}];", compute_type(conv.dtype), line, lanes));
  e.open(fmt::format("for (int t = 0; t < {}; ++t)", lanes));
  e.line(fmt::format("{}[t] = {};", line, zero_of(conv.dtype)));
  e.line(fmt::format("const int position = {} + t * {};", first, conv.window.axes.back().stride));
  e.open(fmt::format("if ((th_u32)position < (th_u32){})", source.width));
  Coords at = source.at;
  at.push_back(e.index().var("position", conv.window.axes.back().in.dim));
  e.line(fmt::format("{}[t] = {};", line, e.value(conv.x, at)));
  e.close();
  e.close();
  e.line(fmt::format("const {} {} = vload{}(0, {});", vector, name, lanes, line));
}

}  // namespace

KernelDraft emit_conv_naive(ProgramDraft& draft, const ConvProblem& conv, const Schedule& s) {
  Emitter e(draft, "conv_naive");
  const int64_t threads = s.get("threads");
  e.line("const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;");
  e.open(fmt::format("if (thread < {})", e.text(e.elements(conv.y))));
  const Coords at =
      e.split(e.index().var("thread", ir::num_elements(e.graph().value(conv.y).type.shape)), conv.y);
  const std::string type = compute_type(conv.dtype);
  e.line(fmt::format("{} total = {};", type, zero_of(conv.dtype)));
  const Index o = at[1];
  const Index per_group = index_of(e, conv.group_outputs);
  const Index g = conv.group == 1 ? e.constant(0) : e.index().div(o, per_group);
  const Index inner_o = conv.group == 1 ? o : e.index().mod(o, per_group);
  // One sum a channel, added up: rounding grows with taps and channels apart, not with their product.
  const Index c = open_named(e, "c", conv.group_channels);
  e.line(fmt::format("{} acc = {};", type, zero_of(conv.dtype)));
  const Index channel = e.index().add(e.index().mul(g, index_of(e, conv.group_channels)), c);
  Coords taps, positions;
  size_t opened = 0;
  for (size_t a = 0; a < conv.spatial; ++a) {
    const WindowAxis& axis = conv.window.axes[a];
    const Index r = open_named(e, kTapNames[a], axis.kernel);
    ++opened;
    Index position;
    std::string inside;
    if (conv.transposed) {  // result position = x position * stride + tap * dilation - pad
      const std::string reach = e.text(e.index().sub(e.index().add(at[a + 2], conv.window.pad(e, a)),
                                                     e.index().mul(r, e.constant(axis.dilation))));
      const std::string in = e.text(index_of(e, axis.in));
      inside = fmt::format("{0} >= 0 && {0} % {1} == 0 && {0} / {1} < {2}", reach, axis.stride, in);
      e.open(fmt::format("if ({})", inside));
      position = e.declare_int(fmt::format("{} / {}", reach, axis.stride));
      ++opened;
    } else {
      position = conv.window.position(e, a, at[a + 2], r);
      if (!axis.always_inside) {
        e.open(fmt::format("if ((th_u32){} < (th_u32){})", e.text(position), e.text(index_of(e, axis.in))));
        ++opened;
      }
    }
    taps.push_back(r);
    positions.push_back(position);
  }
  Coords x_at{at[0], channel}, w_at = conv.transposed ? Coords{channel, inner_o} : Coords{o, c};
  x_at.insert(x_at.end(), positions.begin(), positions.end());
  w_at.insert(w_at.end(), taps.begin(), taps.end());
  const std::string x = e.value(conv.x, x_at), w = e.value(conv.w, w_at);
  e.line(fmt::format("acc = {};", multiply_add(conv.dtype, "acc", x, w)));
  for (; opened > 0; --opened) e.close();
  const std::string u = dtype_bits(conv.dtype) == 64 ? "th_u64" : "th_u32";
  e.line(is_float(conv.dtype) ? std::string("total = total + acc;")
                              : fmt::format("total = ({0})(({1})total + ({1})acc);", type, u));
  e.close();
  store_conv(e, conv, at, "total");
  e.close();
  return e.finish([y = conv.y, threads](const Facts& facts, artifact::Launch& launch) {
    set_grid(launch, ceil_div(elements_at(facts, y), threads), threads);
  });
}

KernelDraft emit_conv_direct(ProgramDraft& draft, const ConvProblem& conv, const Schedule& s) {
  Emitter e(draft, "conv_direct");
  const int64_t rm = s.get("reg_m"), rv = s.get("reg_v"), lanes = s.get("lanes"), threads = s.get("items");
  const int64_t cn = rv * lanes;
  const std::string vector = vector_type(conv.dtype, lanes), type = compute_type(conv.dtype);
  const WindowAxis& last = conv.window.axes.back();
  const bool plain = is_plain_buffer(draft.workload(), conv.x);
  const std::string reader = plain ? row_reader(e, "conv_row", conv.dtype, lanes, last.stride) : "";
  const int rank = static_cast<int>(conv.spatial) + 2;
  const Extent outer = product_of(e.graph(), conv.y, 2, rank - 1);

  const Index m = e.index().var("m", conv.group_outputs.dim), q = e.index().var("q", last.out.dim);
  Template t("opencl/conv_direct.cl");
  t.set("T", type).set("RM", rm).set("CN", cn).set("THREADS", threads);
  t.set("M", e.text(index_of(e, conv.group_outputs))).set("Q", e.text(index_of(e, last.out)));
  t.set("TILES_M", e.text(tiles(e, "tiles_m", conv.group_outputs, rm * threads)));
  t.set("TILES_Q", e.text(tiles(e, "tiles_q", last.out, cn)));
  t.set("OUTER", e.text(index_of(e, outer)));

  Index image, group;
  Coords outer_at;
  std::vector<Index> rows;
  t.hole("rows", [&] {
    const Index z = e.index().var("z", conv.batch.dim * Dim(conv.group));
    group = conv.group == 1 ? e.constant(0) : e.index().mod(z, e.constant(conv.group));
    image = conv.group == 1 ? z : e.index().div(z, e.constant(conv.group));
    std::vector<Index> dims;
    for (size_t a = 0; a + 1 < conv.spatial; ++a) dims.push_back(index_of(e, conv.window.axes[a].out));
    outer_at = dims.empty() ? Coords{} : e.index().split(e.index().var("outer", outer.dim), dims);
    for (int64_t i = 0; i < rm; ++i) {
      const std::string limit = e.text(index_of(e, conv.group_outputs));
      e.line(i == 0 ? std::string("const int row0 = own_m;")
                    : fmt::format("const int row{0} = own_m + {0} < {1} ? own_m + {0} : {1} - 1;", i, limit));
      const Index row = e.index().var(fmt::format("row{}", i), conv.group_outputs.dim);
      rows.push_back(e.index().add(e.index().mul(group, index_of(e, conv.group_outputs)), row));
    }
  });
  t.hole("begin", [&] {
    for (int64_t i = 0; i < rm; ++i)
      for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("{0} c{1}_{2} = ({0})(0);", vector, i, j));
  });
  t.hole("mainloop", [&] {
    const Index c = open_named(e, "c", conv.group_channels);
    const Index channel = e.index().add(e.index().mul(group, index_of(e, conv.group_channels)), c);
    // Partial sums of one channel keep rounding low where there are many channels.
    size_t opened = 0;
    Coords taps, at{image, channel};
    for (size_t a = 0; a + 1 < conv.spatial; ++a) {
      const WindowAxis& axis = conv.window.axes[a];
      const Index r = open_named(e, kTapNames[a], axis.kernel);
      ++opened;
      const Index position = conv.window.position(e, a, outer_at[a], r);
      if (!axis.always_inside) {
        e.open(fmt::format("if ((th_u32){} < (th_u32){})", e.text(position), e.text(index_of(e, axis.in))));
        ++opened;
      }
      taps.push_back(r);
      at.push_back(position);
    }
    const RowSource source = make_row(e, draft, conv, reader, at);
    const Index tap = open_named(e, kTapNames[conv.spatial - 1], last.kernel);
    taps.push_back(tap);
    const Index first = conv.window.position(e, conv.spatial - 1, e.index().var("own_q", last.out.dim), tap);
    for (int64_t j = 0; j < rv; ++j)
      load_vector(e, conv, source, fmt::format("b{}", j),
                  e.text(e.index().add(first, e.constant(j * lanes * last.stride))), lanes);
    for (int64_t i = 0; i < rm; ++i) {
      Coords w_at{rows[static_cast<size_t>(i)], c};
      w_at.insert(w_at.end(), taps.begin(), taps.end());
      e.line(fmt::format("const {0} a{1} = ({0})({2});", vector, i, e.value(conv.w, w_at)));
      for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("c{0}_{1} = fma(a{0}, b{1}, c{0}_{1});", i, j));
    }
    e.close();
    for (; opened > 0; --opened) e.close();
    e.close();
  });
  t.hole("end", [&] {
    for (int64_t i = 0; i < rm; ++i)
      for (int64_t j = 0; j < rv; ++j)
        e.line(fmt::format("vstore{}(c{}_{}, {}, tile);", lanes, i, j, i * rv + j));
  });
  const auto epilogue = [&](const std::string& acc) {
    Coords at{image, e.index().add(e.index().mul(group, index_of(e, conv.group_outputs)), m)};
    at.insert(at.end(), outer_at.begin(), outer_at.end());
    at.push_back(q);
    store_conv(e, conv, at, acc);
  };
  const std::string result = fmt::format("tile + (i * {} + (q - own_q))", cn);
  t.hole("epilogue_lanes",
         [&] { emit_epilogue_lanes(e, conv.dtype, "q", "end_q", q, lanes, result, epilogue); });
  t.hole("epilogue", [&] { epilogue(fmt::format("*({})", result)); });
  t.write(e, "body");
  return e.finish(
      [conv, outer, rm, cn, threads](const Facts& f, artifact::Launch& launch) {
        set_grid(launch,
                 ceil_div(conv.group_outputs.source(f), rm * threads) *
                     ceil_div(conv.window.axes.back().out.source(f), cn) * outer.source(f) *
                     conv.batch.source(f) * conv.group,
                 threads);
      },
      threads);
}

KernelDraft emit_conv_depthwise(ProgramDraft& draft, const ConvProblem& conv, const Schedule& s) {
  Emitter e(draft, "conv_depthwise");
  const int64_t rp = s.get("reg_p"), rv = s.get("reg_v"), lanes = s.get("lanes"), threads = s.get("items");
  const int64_t cn = rv * lanes;
  const std::string vector = vector_type(conv.dtype, lanes), type = compute_type(conv.dtype);
  const WindowAxis& last = conv.window.axes.back();
  const bool two = conv.spatial == 2;
  const Extent one{Dim(1), [](const Facts&) -> int64_t { return 1; }};
  const Extent out_p = two ? conv.window.axes[0].out : one;
  const int64_t taps_p = two ? conv.window.axes[0].kernel.dim.value() : 1, taps_q = last.kernel.dim.value();
  const int64_t stride_p = two ? conv.window.axes[0].stride : 1,
                dilation_p = two ? conv.window.axes[0].dilation : 1;
  const bool plain = is_plain_buffer(draft.workload(), conv.x);
  const std::string reader = plain ? row_reader(e, "conv_row", conv.dtype, lanes, last.stride) : "";
  const Extent channels = image_channels(conv);
  Template t("opencl/conv_depthwise.cl");
  t.set("T", type).set("RP", rp).set("CN", cn).set("THREADS", threads);
  t.set("P", e.text(index_of(e, out_p))).set("Q", e.text(index_of(e, last.out)));
  t.set("TILES_P", e.text(tiles(e, "tiles_p", out_p, rp)))
      .set("TILES_Q", e.text(tiles(e, "tiles_q", last.out, cn)));
  t.set("CHANNELS", e.text(index_of(e, channels)));
  Index image, output, input;
  std::vector<std::string> weights;
  t.hole("weights", [&] {
    const Coords nc = e.index().split(e.index().var("channel", channels.dim),
                                      {index_of(e, conv.batch), index_of(e, conv.outputs)});
    image = nc[0];
    output = nc[1];
    input = e.index().div(output, index_of(e, conv.group_outputs));
    for (int64_t r = 0; r < taps_p; ++r)
      for (int64_t q = 0; q < taps_q; ++q) {
        Coords at{output, e.constant(0)};
        if (two) at.push_back(e.constant(r));
        at.push_back(e.constant(q));
        weights.push_back(e.value(conv.w, at));
      }
  });
  t.hole("begin", [&] {
    for (int64_t i = 0; i < rp; ++i)
      for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("{0} c{1}_{2} = ({0})(0);", vector, i, j));
  });
  t.hole("mainloop", [&] {
    const Index own_p = e.index().var("own_p", out_p.dim), own_q = e.index().var("own_q", last.out.dim);
    const int64_t reach = (rp - 1) * stride_p + (taps_p - 1) * dilation_p + 1;
    for (int64_t y = 0; y < reach; ++y) {
      // Output rows that input row y serves, and by which tap.
      std::vector<std::pair<int64_t, int64_t>> served;
      for (int64_t i = 0; i < rp; ++i) {
        const int64_t offset = y - i * stride_p;
        if (offset >= 0 && offset % dilation_p == 0 && offset / dilation_p < taps_p)
          served.emplace_back(i, offset / dilation_p);
      }
      if (served.empty()) continue;
      Coords at{image, input};
      if (two) {
        const Index position = e.index().sub(
            e.index().add(e.index().mul(own_p, e.constant(stride_p)), e.constant(y)), conv.window.pad(e, 0));
        // Also where no window of a real output leaves the input: rows of the tile beyond the last output do.
        e.open(fmt::format("if ((th_u32){} < (th_u32){})", e.text(position),
                           e.text(index_of(e, conv.window.axes[0].in))));
        at.push_back(position);
      } else {
        e.open("");
      }
      const RowSource source = make_row(e, draft, conv, reader, at);
      for (int64_t tap = 0; tap < taps_q; ++tap)
        for (int64_t j = 0; j < rv; ++j) {
          const std::string name = fmt::format("b{}_{}", tap, j);
          const Index first = conv.window.position(e, conv.spatial - 1, own_q, e.constant(tap));
          load_vector(e, conv, source, name,
                      e.text(e.index().add(first, e.constant(j * lanes * last.stride))), lanes);
          for (const auto& [i, r] : served)
            e.line(fmt::format("c{0}_{1} = fma({2}, ({3})({4}), c{0}_{1});", i, j, name, vector,
                               weights[static_cast<size_t>(r * taps_q + tap)]));
        }
      e.close();
    }
  });
  t.hole("end", [&] {
    for (int64_t i = 0; i < rp; ++i)
      for (int64_t j = 0; j < rv; ++j)
        e.line(fmt::format("vstore{}(c{}_{}, {}, tile);", lanes, i, j, i * rv + j));
  });
  const Index column = e.index().var("q", last.out.dim);
  const auto epilogue = [&](const std::string& acc) {
    Coords at{image, output};
    if (two) at.push_back(e.index().var("p", out_p.dim));
    at.push_back(column);
    store_conv(e, conv, at, acc);
  };
  const std::string result = fmt::format("tile + (i * {} + (q - own_q))", cn);
  t.hole("epilogue_lanes",
         [&] { emit_epilogue_lanes(e, conv.dtype, "q", "end_q", column, lanes, result, epilogue); });
  t.hole("epilogue", [&] { epilogue(fmt::format("*({})", result)); });
  t.write(e, "body");
  return e.finish(
      [out_p, last, channels, rp, cn, threads](const Facts& f, artifact::Launch& launch) {
        const int64_t items =
            ceil_div(out_p.source(f), rp) * ceil_div(last.out.source(f), cn) * channels.source(f);
        set_grid(launch, ceil_div(items, threads), threads);
      },
      threads);
}

}  // namespace thrice::family
