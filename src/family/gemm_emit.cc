// Kernel text of the tactics of gemm.h.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "family/choices.h"
#include "family/gemm.h"
#include "family/gemm_library.h"
#include "family/gemm_mma.h"
#include "family/gemm_panel.h"
#include "family/gemm_skinny.h"
#include "family/gemm_wgmma.h"
#include "family/gemm_wgmma16.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

// The extents of one kernel as they appear in its text.
struct Frame {
  Index z, m, n, k;
  std::string batches, rows, cols, depth;
};

Frame make_frame(Emitter& e, const Gemm& g) {
  Frame f;
  f.batches = extent_text(e, g.batches);
  f.rows = extent_text(e, g.rows);
  f.cols = extent_text(e, g.cols);
  f.depth = extent_text(e, g.depth);
  f.z = batch_index(e, g);
  f.m = e.index().var("m", g.rows.dim);
  f.n = e.index().var("n", g.cols.dim);
  f.k = e.index().var("k", g.depth.dim);
  return f;
}

// True where one running sum over the whole depth would lose too much.
bool needs_partial_sums(const Gemm& g, int64_t limit) {
  return is_float(g.dtype) && (!g.depth.dim.is_const() || g.depth.dim.value() > limit);
}

Template base_template(const std::string& path, const Gemm& g, const Frame& f) {
  Template t(path);
  t.set("T", compute_type(g.dtype))
      .set("ZERO", zero_of(g.dtype))
      .set("M", f.rows)
      .set("N", f.cols)
      .set("K", f.depth);
  t.set("PARTIAL", kPartialDepth);
  return t;
}

KernelDraft emit_naive(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  Emitter e(draft, symbol);
  const Frame f = make_frame(e, g);
  const auto count = [g](const Facts& facts) {
    return g.batches.source(facts) * g.rows.source(facts) * g.cols.source(facts);
  };
  Template t = base_template("portable/gemm_naive.h", g, f);
  t.set("COUNT", e.text(e.index().extent(g.batches.dim * g.rows.dim * g.cols.dim, count)));
  const std::string u = dtype_bits(g.dtype) == 64 ? "th_u64" : "th_u32";
  t.set("ADD", is_float(g.dtype) ? "total + acc"
                                 : fmt::format("({0})(({1})total + ({1})acc)", compute_type(g.dtype), u));
  t.hole("step", [&] {
    const std::string a = g.a(e, f.z, f.m, f.k), b = g.b(e, f.z, f.k, f.n);
    e.line(fmt::format("acc = {};", multiply_add(g.dtype, "acc", a, b)));
  });
  t.hole("epilogue", [&] { g.epilogue(e, f.z, f.m, f.n, "total"); });
  t.write(e, "body");
  const int64_t threads = s.get("threads");
  return e.finish([count, threads](const Facts& facts, artifact::Launch& launch) {
    set_grid(launch, ceil_div(count(facts), threads), threads);
  });
}

KernelDraft emit_tiled(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s,
                       bool is_cpu) {
  Emitter e(draft, symbol);
  const Frame f = make_frame(e, g);
  const int64_t bm = s.get("tile_m"), bn = s.get("tile_n"), bk = s.get("tile_k"), rm = s.get("reg_m"),
                rn = s.get("reg_n");
  const int64_t tx = bn / rn, threads = tx * (bm / rm);
  const int64_t pad = is_cpu ? 0 : 4;  // shared-memory banks: the transposing store of a
  const std::string type = compute_type(g.dtype);
  Template t = base_template("portable/gemm_tiled.h", g, f);
  t.set("BM", bm).set("BN", bn).set("BK", bk).set("RM", rm).set("RN", rn).set("TX", tx).set("THREADS",
                                                                                            threads);
  t.set("BMP", bm + pad).set("BNP", bn);
  t.set("AS", e.local_array(type, bk * (bm + pad))).set("BS", e.local_array(type, bk * bn));
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, bm)).set("TILES_N", tile_count(e, "tiles_n", g.cols, bn));
  // A CPU wants a thread's columns together (vectors), a GPU wants neighbouring threads on neighbouring
  // columns.
  t.set("COLUMN_J", is_cpu ? fmt::format("thread_n * {} + j", rn) : fmt::format("thread_n + j * {}", tx));
  t.set("A_ROW", g.a_rows_follow ? fmt::format("t % {}", bm) : fmt::format("t / {}", bk));
  t.set("A_DEPTH", g.a_rows_follow ? fmt::format("t / {}", bm) : fmt::format("t % {}", bk));
  t.set("B_DEPTH", g.b_depth_follows ? fmt::format("t % {}", bk) : fmt::format("t / {}", bn));
  t.set("B_COL", g.b_depth_follows ? fmt::format("t / {}", bk) : fmt::format("t % {}", bn));
  t.set("MULTIPLY_ADD", multiply_add(g.dtype, "acc[i][j]", "ra[i]", "rb[j]"));
  const bool partial = needs_partial_sums(g, 4 * kPartialDepth);
  for (const char* part : {"total_begin", "total_step", "total_end"})
    t.hole(part, [&t, &e, part, partial] {
      if (partial) t.write(e, part);
    });
  t.hole("load_a", [&] { e.line(fmt::format("element = {};", g.a(e, f.z, f.m, f.k))); });
  t.hole("load_b", [&] { e.line(fmt::format("element = {};", g.b(e, f.z, f.k, f.n))); });
  t.hole("epilogue", [&] { g.epilogue(e, f.z, f.m, f.n, "acc[i][j]"); });
  t.write(e, "body");
  return e.finish(
      [g, bm, bn, threads](const Facts& facts, artifact::Launch& launch) {
        set_tile_grid(launch, g, facts, bm, bn, 1, threads);
      },
      threads);
}

// Rows of an item: row0, row1, ..., none beyond the edge.
std::vector<Index> write_rows(Emitter& e, const Gemm& g, const Frame& f, int64_t rm) {
  std::vector<Index> rows;
  for (int64_t i = 0; i < rm; ++i) {
    const std::string name = fmt::format("row{}", i);
    if (i == 0)
      e.line("const int row0 = own_m;");
    else
      e.line(
          fmt::format("const int {} = own_m + {} < {} ? own_m + {} : {} - 1;", name, i, f.rows, i, f.rows));
    rows.push_back(e.index().var(name, g.rows.dim));
  }
  return rows;
}

void write_vector_step(Emitter& e, const Gemm& g, const Frame& f, const std::vector<Index>& rows, int64_t rv,
                       int64_t lanes, bool inside, const std::string& sums) {
  const std::string vector = vector_type(g.dtype, lanes);
  const Index base = e.index().var("base_n", g.cols.dim);
  if (inside && g.b_along_n) {
    const std::string at = g.b_along_n(e, f.z, f.k, base);
    for (int64_t j = 0; j < rv; ++j)
      e.line(fmt::format("const {} b{} = vload{}({}, {});", vector, j, lanes, j, at));
  } else {
    const std::string type = compute_type(g.dtype);
    e.line(fmt::format("{} line_b[{}];", type, rv * lanes));
    e.open(fmt::format("for (int t = 0; t < {}; ++t)", rv * lanes));
    e.line("const int n = base_n + t;");
    if (!inside) {
      e.line(fmt::format("line_b[t] = {};", zero_of(g.dtype)));
      e.open(fmt::format("if (n < {})", f.cols));
    }
    e.line(fmt::format("line_b[t] = {};", g.b(e, f.z, f.k, f.n)));
    if (!inside) e.close();
    e.close();
    for (int64_t j = 0; j < rv; ++j)
      e.line(fmt::format("const {} b{} = vload{}({}, line_b);", vector, j, lanes, j));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string a = fmt::format("a{}", i);
    e.line(fmt::format("const {0} {1} = ({0})({2});", vector, a, g.a(e, f.z, rows[i], f.k)));
    for (int64_t j = 0; j < rv; ++j)
      e.line(fmt::format("{0}{1}_{2} = fma({3}, b{2}, {0}{1}_{2});", sums, i, j, a));
  }
}

void write_vector_mainloop(Emitter& e, const Gemm& g, const Frame& f, const std::vector<Index>& rows,
                           int64_t rv, int64_t lanes, bool inside) {
  if (!needs_partial_sums(g, 2 * kPartialDepth)) {
    e.open(fmt::format("for (int k = 0; k < {}; ++k)", f.depth));
    write_vector_step(e, g, f, rows, rv, lanes, inside, "c");
    e.close();
    return;
  }
  const std::string vector = vector_type(g.dtype, lanes);
  e.open(fmt::format("for (int begin = 0; begin < {}; begin += {})", f.depth, kPartialDepth));
  e.line(fmt::format("const int end = begin + {0} < {1} ? begin + {0} : {1};", kPartialDepth, f.depth));
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("{0} s{1}_{2} = ({0})(0);", vector, i, j));
  e.open("for (int k = begin; k < end; ++k)");
  write_vector_step(e, g, f, rows, rv, lanes, inside, "s");
  e.close();
  for (size_t i = 0; i < rows.size(); ++i)
    for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("c{0}_{1} += s{0}_{1};", i, j));
  e.close();
}

KernelDraft emit_vector(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  Emitter e(draft, symbol);
  const Frame f = make_frame(e, g);
  const int64_t rm = s.get("reg_m"), rv = s.get("reg_v"), lanes = s.get("lanes"), threads = s.get("items");
  const int64_t cn = rv * lanes;
  const std::string vector = vector_type(g.dtype, lanes);
  std::vector<Index> rows;
  Template t = base_template("opencl/gemm_vector.cl", g, f);
  t.set("RM", rm).set("CN", cn).set("THREADS", threads);
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, rm * threads))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, cn));
  t.hole("rows", [&] { rows = write_rows(e, g, f, rm); });
  t.hole("begin", [&] {
    for (int64_t i = 0; i < rm; ++i)
      for (int64_t j = 0; j < rv; ++j) e.line(fmt::format("{0} c{1}_{2} = ({0})(0);", vector, i, j));
  });
  t.hole("mainloop", [&] {
    const bool known = g.cols.dim.is_const();
    if (known) return write_vector_mainloop(e, g, f, rows, rv, lanes, g.cols.dim.value() >= cn);
    e.open(fmt::format("if ({} >= {})", f.cols, cn));
    write_vector_mainloop(e, g, f, rows, rv, lanes, true);
    e.close();
    e.open("else");
    write_vector_mainloop(e, g, f, rows, rv, lanes, false);
    e.close();
  });
  t.hole("end", [&] {
    for (int64_t i = 0; i < rm; ++i)
      for (int64_t j = 0; j < rv; ++j)
        e.line(fmt::format("vstore{}(c{}_{}, {}, tile);", lanes, i, j, i * rv + j));
  });
  const auto epilogue = [&](const std::string& acc) { g.epilogue(e, f.z, f.m, f.n, acc); };
  const std::string result = fmt::format("tile + (i * {} + (n - base_n))", cn);
  t.hole("epilogue_lanes",
         [&] { emit_epilogue_lanes(e, g.dtype, "n", "end_n", f.n, lanes, result, epilogue); });
  t.hole("epilogue", [&] { epilogue(fmt::format("*({})", result)); });
  t.write(e, "body");
  return e.finish(
      [g, rm, cn, threads](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch,
                 ceil_div(g.rows.source(facts), rm * threads) * ceil_div(g.cols.source(facts), cn) *
                     g.batches.source(facts),
                 threads);
      },
      threads);
}

KernelDraft emit_dot(ProgramDraft& draft, const std::string& symbol, const Gemm& g, const Schedule& s) {
  Emitter e(draft, symbol);
  const Frame f = make_frame(e, g);
  const int64_t rm = s.get("reg_m"), rn = s.get("reg_n"), lanes = s.get("lanes"), threads = s.get("items");
  const std::string vector = vector_type(g.dtype, lanes), type = compute_type(g.dtype);
  std::vector<Index> rows, cols;
  Template t = base_template("opencl/gemm_dot.cl", g, f);
  t.set("RM", rm).set("RN", rn).set("THREADS", threads).set("L", lanes);
  t.set("TILES_M", tile_count(e, "tiles_m", g.rows, rm * threads))
      .set("TILES_N", tile_count(e, "tiles_n", g.cols, rn));
  const auto each = [&](const std::function<void(int64_t, int64_t)>& body) {
    for (int64_t i = 0; i < rm; ++i)
      for (int64_t j = 0; j < rn; ++j) body(i, j);
  };
  t.hole("rows", [&] {
    rows = write_rows(e, g, f, rm);
    for (int64_t j = 0; j < rn; ++j) {
      e.line(j == 0
                 ? std::string("const int col0 = own_n;")
                 : fmt::format("const int col{0} = own_n + {0} < {1} ? own_n + {0} : {1} - 1;", j, f.cols));
      cols.push_back(e.index().var(fmt::format("col{}", j), g.cols.dim));
    }
  });
  t.hole("begin", [&] {
    each([&](int64_t i, int64_t j) { e.line(fmt::format("{0} c{1}_{2} = ({0})(0);", vector, i, j)); });
  });
  t.hole("step", [&] {
    for (int64_t i = 0; i < rm; ++i)
      e.line(fmt::format("const {} a{} = vload{}(0, {});", vector, i, lanes,
                         g.a_along_k(e, f.z, rows[static_cast<size_t>(i)], f.k)));
    for (int64_t j = 0; j < rn; ++j) {
      e.line(fmt::format("const {} b{} = vload{}(0, {});", vector, j, lanes,
                         g.b_along_k(e, f.z, f.k, cols[static_cast<size_t>(j)])));
      for (int64_t i = 0; i < rm; ++i) e.line(fmt::format("c{0}_{1} = fma(a{0}, b{1}, c{0}_{1});", i, j));
    }
  });
  t.hole("fold", [&] {
    e.line(fmt::format("{} tile[{}];", type, rm * rn));
    each([&](int64_t i, int64_t j) {
      std::string sum = fmt::format("c{}_{}", i, j);
      for (int64_t half = lanes / 2; half >= 1; half /= 2) {
        const std::string folded = fmt::format("f{}_{}_{}", i, j, half);
        e.line(fmt::format("const {} {} = {}.lo + {}.hi;", vector_type(g.dtype, half), folded, sum, sum));
        sum = folded;
      }
      e.line(fmt::format("tile[{}] = {};", i * rn + j, sum));
    });
  });
  t.hole("rest", [&] {
    each([&](int64_t i, int64_t j) {
      const std::string at = fmt::format("tile[{}]", i * rn + j);
      const std::string a = g.a(e, f.z, rows[static_cast<size_t>(i)], f.k);
      e.line(fmt::format("{} = {};", at,
                         multiply_add(g.dtype, at, a, g.b(e, f.z, f.k, cols[static_cast<size_t>(j)]))));
    });
  });
  t.hole("epilogue", [&] { g.epilogue(e, f.z, f.m, f.n, fmt::format("tile[i * {} + j]", rn)); });
  t.write(e, "body");
  return e.finish(
      [g, rm, rn, threads](const Facts& facts, artifact::Launch& launch) {
        set_grid(launch,
                 ceil_div(g.rows.source(facts), rm * threads) * ceil_div(g.cols.source(facts), rn) *
                     g.batches.source(facts),
                 threads);
      },
      threads);
}

}  // namespace

Index extent_index(Emitter& e, const Extent& extent) { return e.index().extent(extent.dim, extent.source); }

std::string extent_text(Emitter& e, const Extent& extent) { return e.text(extent_index(e, extent)); }

Index batch_index(Emitter& e, const Gemm& g) {
  const bool one = g.batches.dim.is_const() && g.batches.dim.value() == 1;
  return one ? e.constant(0) : e.index().var("z", g.batches.dim);
}

void set_tile_grid(artifact::Launch& launch, const Gemm& g, const Facts& f, int64_t bm, int64_t bn,
                   int64_t split, int64_t threads) {
  set_grid(launch,
           ceil_div(g.rows.source(f), bm) * ceil_div(g.cols.source(f), bn) * g.batches.source(f) * split,
           threads);
}

std::string tile_count(Emitter& e, const std::string& name, const Extent& extent, int64_t tile) {
  if (extent.dim.is_const()) return e.text(e.constant(ceil_div(extent.dim.value(), tile)));
  return e.text(
      e.index().extent(name, [s = extent.source, tile](const Facts& f) { return ceil_div(s(f), tile); }));
}

std::string all_of(const std::vector<std::string>& conditions) {
  std::string all;
  for (const std::string& c : conditions)
    if (!c.empty()) all += (all.empty() ? "" : " && ") + c;
  return all;
}

std::string below(const Extent& extent, const std::string& text, const std::string& variable, int64_t tile) {
  if (extent.dim.is_const() && extent.dim.value() % tile == 0) return "";
  return fmt::format("{} < {}", variable, text);
}

std::string vector_type(DType dtype, int64_t lanes) {
  return lanes == 1 ? compute_type(dtype) : fmt::format("{}{}", compute_type(dtype), lanes);
}

void emit_gemm(ProgramDraft& draft, const std::string& symbol, const Gemm& gemm, const Schedule& schedule,
               bool is_cpu) {
  const std::string& tactic = schedule.tactic;
  if (tactic == "cublaslt") return emit_gemm_library(draft, symbol, gemm, schedule);
  if (tactic == "wgmma") return emit_gemm_wgmma(draft, symbol, gemm, schedule);
  if (tactic == "wgmma16") return emit_gemm_wgmma16(draft, symbol, gemm, schedule);
  if (tactic == "skinny") return emit_gemm_skinny(draft, symbol, gemm, schedule);
  if (tactic == "mma") return emit_gemm_mma(draft, symbol, gemm, schedule);
  const auto kernel = [&] {
    if (tactic == "naive") return emit_naive(draft, symbol, gemm, schedule);
    if (tactic == "tiled") return emit_tiled(draft, symbol, gemm, schedule, is_cpu);
    if (tactic == "vector") return emit_vector(draft, symbol, gemm, schedule);
    if (tactic == "panel") return emit_gemm_panel(draft, symbol, gemm, schedule);
    if (tactic == "dot") return emit_dot(draft, symbol, gemm, schedule);
    throw Error(Code::kInternal, fmt::format("products have no tactic '{}'", tactic));
  };
  draft.kernels.push_back(kernel());
}

}  // namespace thrice::family
