#include "family/attention/attention_row.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/gemm.h"

namespace thrice::family {

void write_attention_row(Emitter& e, const AttentionForm& form, Index z, Index m) {
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
