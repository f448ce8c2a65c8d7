#include "family/attention/attention_row.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/gemm.h"

namespace thrice::family {

namespace {

// A row of a window: only its own keys, a few at a time, so that what a larger score costs is paid once for
// all of them and neighbours along the depth are independent sums.
void write_window_row(Emitter& e, const AttentionForm& form, Index z, Index m) {
  constexpr int64_t kKeys = 8;
  const int64_t lanes = form.depth % 8 == 0 ? 8 : form.depth % 4 == 0 ? 4 : 1;
  const Index n = e.index().var("n", form.keys.dim), d = e.index().var("d", ir::Dim(form.depth)),
              w = e.index().var("w", ir::Dim(form.width));
  const auto loop = [&](const char* name, int64_t end) {
    e.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", name, end));
  };
  const auto each_column = [&](const std::string& line) {
    loop("w", form.width);
    e.line(line);
    e.close();
  };
  const auto [from, to] = window_of_row(e, form, z, m);
  e.line(fmt::format("const int first_key = {};", from));
  e.line(fmt::format("const int end_key = {};", to));
  e.line(fmt::format("float q[{}];", form.depth));
  loop("d", form.depth);
  e.line(fmt::format("q[d] = {};", operand_element(e, form, form.q, z, m, d)));
  e.close();
  e.line(fmt::format("float sums[{}];", form.width));
  e.line("float top = -TH_INF_F32;");
  e.line("float total = 0.0f;");
  each_column("sums[w] = 0.0f;");
  e.open(fmt::format("for (int block = first_key; block < end_key; block += {})", kKeys));
  e.line(fmt::format("float scores[{}];", kKeys));
  e.line("float largest = top;");
  loop("j", kKeys);
  e.line("const int n = th_min_int(block + j, end_key - 1);");
  e.line(fmt::format("float part[{}];", lanes));
  loop("l", lanes);
  e.line("part[l] = 0.0f;");
  e.close();
  e.open(fmt::format("for (int t = 0; t < {}; t += {})", form.depth, lanes));
  loop("l", lanes);
  e.line("const int d = t + l;");
  e.line(fmt::format("part[l] = th_fma_f32(q[d], {}, part[l]);", operand_element(e, form, form.k, z, n, d)));
  e.close();
  e.close();
  e.line("float score = 0.0f;");
  loop("l", lanes);
  e.line("score += part[l];");
  e.close();
  const std::string logit = logit_element(e, form, z, m, n, "score");
  e.line(fmt::format("scores[j] = block + j < end_key ? {} : -TH_INF_F32;", logit));
  e.line("largest = scores[j] > largest ? scores[j] : largest;");
  e.close();
  // Where every score so far is -Inf the difference would be NaN.
  e.line("const float base = largest == -TH_INF_F32 ? 0.0f : largest;");
  e.line("const float share = TH_F32(exp)(top - base);");
  e.line("total *= share;");
  e.line("top = largest;");
  each_column("sums[w] *= share;");
  loop("j", kKeys);
  e.line("const int n = th_min_int(block + j, end_key - 1);");
  e.line("const float power = TH_F32(exp)(scores[j] - base);");
  e.line("total += power;");
  loop("w", form.width);
  const std::string v = operand_element(e, form, form.v, z, n, w);
  e.line(fmt::format("sums[w] = th_fma_f32(power, {}, sums[w]);", v));
  e.close();
  e.close();
  e.close();
  loop("w", form.width);
  e.line(fmt::format("const float y = {} ? sums[w] / total : 0.0f;",
                     form.nan_to_zero ? "total > 0.0f" : extent_text(e, form.keys) + " > 0"));
  store_element(e, form, z, m, w, "y");
  e.close();
}

}  // namespace

void write_attention_row(Emitter& e, const AttentionForm& form, Index z, Index m) {
  if (form.has_window()) return write_window_row(e, form, z, m);
  const std::string keys = extent_text(e, form.keys);
  e.line(fmt::format("float sums[{}];", form.width));
  e.line("float top = -TH_INF_F32;");
  e.line("float total = 0.0f;");
  const auto each_column = [&](const std::function<void(Index)>& write) {
    write(e.open_loop("0", std::to_string(form.width), "1", ir::Dim(form.width)));
    e.close();
  };
  each_column([&](Index w) { e.line(fmt::format("sums[{}] = 0.0f;", e.text(w))); });
  const Index n = e.open_loop("0", keys, "1", form.keys.dim);
  e.line("float score = 0.0f;");
  const Index d = e.open_loop("0", std::to_string(form.depth), "1", ir::Dim(form.depth));
  const std::string q = operand_element(e, form, form.q, z, m, d),
                    k = operand_element(e, form, form.k, z, n, d);
  e.line(fmt::format("score = th_fma_f32({}, {}, score);", q, k));
  e.close();
  const std::string logit = logit_element(e, form, z, m, n, "score");
  e.open(fmt::format("if ({} > top)", logit));
  e.line(fmt::format("const float share = TH_F32(exp)(top - {});", logit));
  e.line("total *= share;");
  each_column([&](Index w) { e.line(fmt::format("sums[{}] *= share;", e.text(w))); });
  e.line(fmt::format("top = {};", logit));
  e.close();
  // Where every score so far is -Inf the difference would be NaN.
  e.line(fmt::format("const float power = top == -TH_INF_F32 && {0} == top ? 0.0f : TH_F32(exp)({0} - top);",
                     logit));
  e.line("total += power;");
  each_column([&](Index w) {
    const std::string v = operand_element(e, form, form.v, z, n, w);
    e.line(fmt::format("sums[{0}] = th_fma_f32(power, {1}, sums[{0}]);", e.text(w), v));
  });
  e.close();
  const std::string share = form.nan_to_zero ? "total > 0.0f" : fmt::format("{} > 0", keys);
  each_column([&](Index w) {
    e.line(fmt::format("const float y = {} ? sums[{}] / total : 0.0f;", share, e.text(w)));
    store_element(e, form, z, m, w, "y");
  });
}

void emit_attention_row(ProgramDraft& draft, const AttentionForm& form, const Schedule& s) {
  const int64_t threads = s.get("threads");
  Emitter e(draft, "attention_row");
  const ir::Dim all = form.batches.dim * form.rows.dim;
  const Index rows = extent_index(e, form.rows);
  const Index row = e.index().var("row", all);
  e.line(fmt::format("const int row = TH_BLOCK * {} + TH_THREAD;", threads));
  const std::string count = e.text(e.index().mul(extent_index(e, form.batches), rows));
  e.open(fmt::format("if (row < {})", count));
  write_attention_row(e, form, e.index().div(row, rows), e.index().mod(row, rows));
  e.close();
  draft.kernels.push_back(e.finish(
      [form, threads](const Facts& f, artifact::Launch& launch) {
        set_grid(launch, ceil_div(form.batches.source(f) * form.rows.source(f), threads), threads);
      },
      threads));
}

}  // namespace thrice::family
