#include "family/matmul/matmul.h"

#include <fmt/format.h>

#include "family/drafted.h"
#include "family/gemm.h"
#include "family/gemm_library.h"
#include "family/scalar.h"

namespace thrice::family {

namespace {

using ir::Dim;
using ir::Op;
using ir::ValueId;

constexpr const char* kTactics[] = {"naive",  "tiled",    "mma",    "wgmma", "wgmma16",
                                    "skinny", "cublaslt", "vector", "panel", "dot"};

bool is_one(const Dim& d) { return d.is_const() && d.value() == 1; }

// Where b has no batch, the batches of a are more rows: a batch of short products becomes one tall one.
bool folds_batches(const ir::Graph& graph, const ir::Node& node) {
  if (node.int_attr("trans_a", 0) != 0) return false;
  const auto& a = graph.value(node.inputs[0]).type.shape;
  const auto& b = graph.value(node.inputs[1]).type.shape;
  const auto& y = graph.value(node.outputs[0]).type.shape;
  for (size_t k = 0; k + 2 < b.size(); ++k)
    if (!is_one(b[k])) return false;
  if (a.size() < y.size()) return false;
  for (size_t k = 0; k + 2 < y.size(); ++k)
    if (!(a[k] == y[k])) return false;
  return true;
}

Gemm make_gemm(const ProgramDraft& draft, const HeavyRegion& region) {
  const ir::Graph& graph = draft.graph();
  const ir::Node& node = *region.op;
  const ValueId a = node.inputs[0], b = node.inputs[1], y = node.outputs[0];
  const bool trans_a = node.int_attr("trans_a", 0) != 0, trans_b = node.int_attr("trans_b", 0) != 0;
  const bool folded = folds_batches(graph, node);
  const auto& shape = graph.value(y).type.shape;
  const int rank = static_cast<int>(shape.size()),
            a_rank = static_cast<int>(graph.value(a).type.shape.size());

  Gemm g;
  g.dtype = graph.value(y).type.dtype;
  const auto leading = [y](int count) -> Source {
    return [y, count](const Facts& facts) {
      int64_t n = 1;
      for (int k = 0; k < count; ++k) n *= extent_at(facts, y, k);
      return n;
    };
  };
  Dim batches(1);
  for (int k = 0; k < rank - 2; ++k) batches = batches * shape[static_cast<size_t>(k)];
  if (folded) {
    g.batches = {Dim(1), [](const Facts&) -> int64_t { return 1; }};
    g.rows = {batches * shape[static_cast<size_t>(rank - 2)], leading(rank - 1)};
  } else {
    g.batches = {batches, leading(rank - 2)};
    g.rows = {shape[static_cast<size_t>(rank - 2)], extent_of(y, rank - 2)};
  }
  g.cols = {shape[static_cast<size_t>(rank - 1)], extent_of(y, rank - 1)};
  const int depth_axis = trans_a ? a_rank - 2 : a_rank - 1;
  g.depth = {graph.value(a).type.shape[static_cast<size_t>(depth_axis)], extent_of(a, depth_axis)};

  // Coordinates of the result without the column.
  const auto rows_of = [y, rank, folded](Emitter& e, Index z, Index m) {
    std::vector<Index> dims = e.dims(y);
    dims.pop_back();
    if (folded) return e.index().split(m, dims);
    dims.pop_back();
    Coords c = rank > 2 ? e.index().split(z, dims) : Coords{};
    c.push_back(m);
    return c;
  };
  const auto a_coords = [=](Emitter& e, Index z, Index m, Index k) {
    Coords c = rows_of(e, z, m);
    const Index row = c.back();
    c.pop_back();
    return product_coords(e, a, y, c, trans_a ? k : row, trans_a ? row : k);
  };
  const auto b_coords = [=](Emitter& e, Index z, Index k, Index n) {
    Coords c;
    if (folded)
      c.assign(static_cast<size_t>(rank - 2), e.constant(0));
    else {
      c = rows_of(e, z, e.constant(0));
      c.pop_back();
    }
    return product_coords(e, b, y, c, trans_b ? n : k, trans_b ? k : n);
  };
  g.a = [=](Emitter& e, Index z, Index m, Index k) { return e.value(a, a_coords(e, z, m, k)); };
  g.b = [=](Emitter& e, Index z, Index k, Index n) { return e.value(b, b_coords(e, z, k, n)); };
  const auto in_runs = [&](ValueId v, int64_t run) {
    const Dim& last = graph.value(v).type.shape.back();
    return last.is_const() && last.value() % run == 0;
  };
  const auto has_place = [&](ValueId v) {
    return graph.value(v).type.dtype == g.dtype && is_stored_buffer(draft.workload(), v);
  };
  if (has_place(a)) {
    g.a_place = [=, &draft](Emitter& e, Index z, Index m, Index k) -> GemmPlace {
      return {address(e, draft, a, a_coords(e, z, m, k)), ""};
    };
    g.a_in_fours = in_runs(a, 4);
    g.a_in_eights = in_runs(a, 8);
    g.a_is_weight = graph.value(a).is_weight;
  }
  if (has_place(b)) {
    g.b_place = [=, &draft](Emitter& e, Index z, Index k, Index n) -> GemmPlace {
      return {address(e, draft, b, b_coords(e, z, k, n)), ""};
    };
    g.b_in_fours = in_runs(b, 4);
    g.b_in_eights = in_runs(b, 8);
    g.b_is_weight = graph.value(b).is_weight;
  }
  g.a_rows_follow = trans_a;
  g.b_depth_follows = trans_b;
  const bool one_column = shape[static_cast<size_t>(rank - 1)].is_const() && is_one(g.cols.dim);
  if (!trans_a && is_plain_buffer(draft.workload(), a))
    g.a_along_k = [=, &draft](Emitter& e, Index z, Index m, Index k) {
      return address(e, draft, a, a_coords(e, z, m, k));
    };
  if (is_plain_buffer(draft.workload(), b)) {
    const auto at = [=, &draft](Emitter& e, Index z, Index k, Index n) {
      return address(e, draft, b, b_coords(e, z, k, n));
    };
    if (trans_b || one_column) g.b_along_k = at;
    if (!trans_b) g.b_along_n = at;
  }
  std::vector<Dim> matrices;  // folded batches are rows of one matrix
  if (!folded) matrices.assign(shape.begin(), shape.end() - 2);
  g.a_matrix = whole_matrix(draft.workload(), a, folded ? static_cast<size_t>(a_rank) : 2, matrices);
  g.b_matrix = whole_matrix(draft.workload(), b, 2, matrices);
  g.plain_output = plain_output(draft.workload(), y);
  g.epilogue = [=](Emitter& e, Index z, Index m, Index n, const std::string& acc) {
    Coords c = rows_of(e, z, m);
    c.push_back(n);
    emit_epilogue(e, region, c, {acc});
  };
  return g;
}

class Matmul final : public DraftedFamily {
 public:
  std::string_view name() const override { return "matmul"; }

  Refusal match(const Workload& workload) const override { return refuse_heavy(workload, {Op::matmul}); }

  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override {
    const ProgramDraft draft(workload);
    const Gemm gemm = make_gemm(draft, find_heavy(workload, {Op::matmul}));
    const GemmSize size = gemm_size(gemm, ir::bind(workload.graph, facts));
    const std::string tactic = default_gemm_tactic(gemm, size, device);
    return {"matmul", tactic, default_gemm(tactic, size, device)};
  }

  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override {
    const ProgramDraft draft(workload);
    const Gemm gemm = make_gemm(draft, find_heavy(workload, {Op::matmul}));
    const GemmSize size = gemm_size(gemm, ir::bind(workload.graph, facts));
    ScheduleSpace space;
    for (const char* tactic : kTactics) {
      Schedule s{"matmul", tactic, default_gemm(tactic, size, device)};
      if (refuse_gemm(workload, gemm, s, device)) continue;
      space.tactics.push_back({"matmul", tactic, gemm_parameters(tactic, device)});
    }
    return space;
  }

  Refusal illegal(const Workload& workload, const Schedule& schedule,
                  const DeviceSpec& device) const override {
    if (schedule.family != "matmul" || !is_gemm_tactic(schedule.tactic))
      return fmt::format("matmul has no tactic '{}'", schedule.tactic);
    const ProgramDraft draft(workload);
    return refuse_gemm(workload, make_gemm(draft, find_heavy(workload, {Op::matmul})), schedule, device);
  }

  std::vector<Share> shares(const Workload& workload, const Schedule& schedule) const override {
    return stores_once(schedule.tactic) ? epilogue_shares(workload) : std::vector<Share>();
  }

  std::vector<KernelUse> uses(const Workload& workload, const Schedule& schedule) const override {
    return make_draft(workload, schedule, false).uses();
  }

 private:
  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool is_cpu) const override {
    ProgramDraft draft(workload);
    const Gemm gemm = make_gemm(draft, find_heavy(workload, {Op::matmul}));
    emit_gemm(draft, "matmul_" + schedule.tactic, gemm, schedule, is_cpu);
    return draft;
  }
};

}  // namespace

const Family& matmul_family() {
  static const Matmul kFamily;
  return kFamily;
}

}  // namespace thrice::family
