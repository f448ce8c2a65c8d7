#include "family/gemm_keep.h"

#include <fmt/format.h>

#include "family/choices.h"

namespace thrice::family {

void keep_rows(ProgramDraft& draft, const std::string& symbol, Gemm& g) {
  constexpr int64_t kThreads = 256;
  if (!g.a_is_weight || !g.batches.dim.is_const() || !g.rows.dim.is_const() || !g.depth.dim.is_const())
    return;
  const int64_t batches = g.batches.dim.value(), rows = g.rows.dim.value(), depth = g.depth.dim.value(),
                count = batches * rows * depth;
  const int copy = draft.add_temporary(
      g.dtype, [count](const Facts&) { return count; }, true);
  Emitter e(draft, symbol + "_keep_a");
  e.line(fmt::format("const int item = TH_BLOCK * {} + TH_THREAD;", kThreads));
  e.open(fmt::format("if (item < {})", count));
  const Coords at = e.index().split(e.index().var("item", ir::Dim(count)),
                                    {e.constant(batches), e.constant(rows), e.constant(depth)});
  e.store_temporary(copy, "item", g.a(e, at[0], at[1], at[2]));
  e.close();
  KernelDraft kernel =
      e.finish([count](const Facts&,
                       artifact::Launch& launch) { set_grid(launch, ceil_div(count, kThreads), kThreads); },
               kThreads);
  kernel.once = true;
  draft.kernels.push_back(std::move(kernel));
  const std::string name = draft.temporary_name(copy);
  const auto offset = [=](Emitter& into, Index z, Index m, Index k) {
    return into.text(
        into.index().linear({z, m, k}, {into.constant(batches), into.constant(rows), into.constant(depth)}));
  };
  const DType dtype = g.dtype;
  g.a = [=](Emitter& into, Index z, Index m, Index k) {
    return into.load(name, dtype, offset(into, z, m, k));
  };
  g.a_place = [=](Emitter& into, Index z, Index m, Index k) -> GemmPlace {
    return {fmt::format("({} + {})", name, offset(into, z, m, k)), ""};
  };
  g.a_in_fours = depth % 4 == 0;
  g.a_in_eights = depth % 8 == 0;
}

}  // namespace thrice::family
