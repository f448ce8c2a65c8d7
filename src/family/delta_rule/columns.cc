#include "family/delta_rule/columns.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/scalar.h"

namespace thrice::family {

void emit_columns(ProgramDraft& draft, const DeltaRuleForm& form, int64_t threads) {
  Emitter e(draft, "delta_rule_columns");
  const ir::Graph& graph = draft.graph();
  const auto shape = [&](ir::ValueId v) -> const ir::Shape& { return graph.value(v).type.shape; };
  const DType dtype = graph.value(form.a_log).type.dtype;  // f32, or f64
  const std::string type = compute_type(dtype), exp = dtype == DType::kF64 ? "TH_F64(exp)" : "TH_F32(exp)",
                    sqrt = dtype == DType::kF64 ? "TH_F64(sqrt)" : "TH_F32(sqrt)";
  const auto number = [&](double x) { return float_literal(dtype, x); };
  const Index heads = e.dim(form.q, 2), width = e.dim(form.v, 3);
  const ir::Dim all = shape(form.last)[0] * shape(form.q)[2] * shape(form.v)[3];
  const Index i = e.index().var("i", all);
  e.line(fmt::format("const int i = TH_BLOCK * {} + TH_THREAD;", threads));
  e.open(fmt::format("if (i < {})", e.text(e.product({e.dim(form.last, 0), heads, width}))));
  const Index w = e.index().mod(i, width), row = e.index().div(i, width);
  const Index h = e.index().mod(row, heads), n = e.index().div(row, heads);
  const std::string tokens = e.text(e.dim(form.q, 1));
  if (form.offsets == ir::kNoValue) {
    e.line("const int begin = 0;");
    e.line(fmt::format("const int end = {};", tokens));
  } else {
    const std::string from = e.value(form.offsets, {n});
    const std::string to = e.value(form.offsets, {e.declare_int(fmt::format("{} + 1", e.text(n)))});
    e.line(fmt::format("const int begin = {0} < 0 ? 0 : {0} > {1} ? {1} : (int){0};", from, tokens));
    e.line(fmt::format("const int end = {0} < begin ? begin : {0} > {1} ? {1} : (int){0};", to, tokens));
  }
  const Index b = form.offsets == ir::kNoValue ? n : e.constant(0);
  const auto each = [&](const std::function<void(Index)>& write) {
    write(e.open_loop("0", std::to_string(form.depth), "1", ir::Dim(form.depth)));
    e.close();
  };
  e.line(fmt::format("{} state[{}];", type, form.depth));
  each([&](Index d) {
    const std::string first = form.first == ir::kNoValue ? number(0) : e.value(form.first, {n, h, d, w});
    e.line(fmt::format("state[{}] = {};", e.text(d), first));
  });
  e.line(fmt::format("const {} rate = {}({});", type, exp, e.value(form.a_log, {h})));
  const Index t = e.open_loop("begin", "end", "1", shape(form.q)[1]);
  e.line(fmt::format("{0} of_q = {1};", type, number(form.epsilon)));
  e.line(fmt::format("{0} of_k = {1};", type, number(form.epsilon)));
  each([&](Index d) {
    const std::string q = e.value(form.q, {b, t, h, d}), k = e.value(form.k, {b, t, h, d});
    e.line(fmt::format("of_q += {0} * {0};", q));
    e.line(fmt::format("of_k += {0} * {0};", k));
  });
  e.line(fmt::format("of_q = {} / {}(of_q);", number(form.scale), sqrt));
  e.line(fmt::format("of_k = {} / {}(of_k);", number(1), sqrt));
  e.line(fmt::format("{} known = {};", type, number(0)));
  const bool one_gate = shape(form.g)[3] == ir::Dim(1), one_bias = shape(form.dt_bias)[1] == ir::Dim(1);
  each([&](Index d) {
    const std::string g = e.value(form.g, {b, t, h, one_gate ? e.constant(0) : d}),
                      bias = e.value(form.dt_bias, {h, one_bias ? e.constant(0) : d}),
                      k = e.value(form.k, {b, t, h, d});
    e.line(fmt::format("state[{0}] *= {1}({2} / ({3} + {1}(-rate * ({4} + {5}))));", e.text(d), exp,
                       number(form.lower_bound), number(1), g, bias));
    e.line(fmt::format("known += {} * state[{}];", k, e.text(d)));
  });
  const std::string beta = e.value(form.beta, {b, t, h}), v = e.value(form.v, {b, t, h, w});
  e.line(fmt::format("const {} update = of_k * ({} - of_k * known) / ({} + {}(-{}));", type, v, number(1),
                     exp, beta));
  e.line(fmt::format("{} sum = {};", type, number(0)));
  each([&](Index d) {
    const std::string q = e.value(form.q, {b, t, h, d}), k = e.value(form.k, {b, t, h, d});
    e.line(fmt::format("state[{}] += {} * update;", e.text(d), k));
    e.line(fmt::format("sum += {} * state[{}];", q, e.text(d)));
  });
  if (form.out >= 0) e.store(static_cast<size_t>(form.out), {b, t, h, w}, e.declare(dtype, "of_q * sum"));
  e.close();
  if (form.last_out >= 0)
    each([&](Index d) {
      e.store(static_cast<size_t>(form.last_out), {n, h, d, w}, fmt::format("state[{}]", e.text(d)));
    });
  e.close();
  draft.kernels.push_back(e.finish(
      [form, threads](const Facts& f, artifact::Launch& launch) {
        const int64_t columns =
            extent_at(f, form.last, 0) * extent_at(f, form.q, 2) * extent_at(f, form.v, 3);
        set_grid(launch, ceil_div(columns, threads), threads);
      },
      threads));
}

}  // namespace thrice::family
