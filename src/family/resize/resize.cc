#include "family/resize/resize.h"

#include <fmt/format.h>

#include "family/drafted.h"
#include "family/scalar.h"
#include "family/window.h"

namespace thrice::family {

namespace {

using ir::Op;

const std::set<Op> kOps = {Op::resize, Op::grid_sample, Op::roi_align};

class Resize final : public DraftedFamily {
 public:
  std::string_view name() const override { return "resize"; }

  Refusal match(const Workload& workload) const override {
    try {
      const HeavyRegion region = find_heavy(workload, kOps);
      if (region.op->op == Op::resize) return refuse_resize(workload, region);
      if (!is_float(workload.graph.value(region.op->inputs[0]).type.dtype))
        return fmt::format("{} is defined on floats", ir::op_name(region.op->op));
      if (region.op->op == Op::grid_sample) {
        const size_t rank = workload.graph.value(region.op->inputs[0]).type.shape.size();
        if (rank != 4 && rank != 5) return "grid_sample is written for 2 and 3 spatial axes";
      }
      return std::nullopt;
    } catch (const NotMatched& reason) {
      return reason.reason;
    }
  }

  Schedule default_schedule(const Workload&, const std::vector<Fact>&,
                            const DeviceSpec& device) const override {
    return {"resize", "naive", {{"threads", device.is_cpu ? 64 : 256}}};
  }

  ScheduleSpace space(const Workload& workload, const std::vector<Fact>&, const DeviceSpec&) const override {
    ScheduleSpace space{{{"resize", "naive", {{"threads", {16, 32, 64, 128, 256}}}}}};
    if (takes_planes(workload))
      space.tactics.push_back({"resize", "planes", {{"threads", {16, 64, 256}}, {"planes", {2, 4, 8, 16}}}});
    return space;
  }

  Refusal illegal(const Workload& workload, const Schedule& s, const DeviceSpec& device) const override {
    if (s.family == "resize" && s.tactic == "planes") {
      if (!takes_planes(workload)) return "there is no axis before those that are resized";
      if (s.get("planes") < 1) return "planes are at least 1";
    } else if (s.family != "resize" || s.tactic != "naive")
      return fmt::format("resize has no tactic '{}'", s.tactic);
    return refuse_device(workload, device, s.get("threads"), 0);
  }

 private:
  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool) const override {
    ProgramDraft draft(workload);
    const HeavyRegion region = find_heavy(workload, kOps);
    const ir::ValueId y = region.result;
    const int64_t threads = schedule.get("threads");
    Emitter e(draft, fmt::format("{}_{}", ir::op_name(region.op->op), schedule.tactic));
    e.line("const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;");
    if (schedule.tactic == "planes") {
      draft.kernels.push_back(planes_kernel(e, workload, region, threads, schedule.get("planes")));
      return draft;
    }
    e.open(fmt::format("if (thread < {})", e.text(e.elements(y))));
    const Coords at =
        e.split(e.index().var("thread", ir::num_elements(workload.graph.value(y).type.shape)), y);
    begin_result(e, y);
    if (region.op->op == Op::resize)
      write_resize(e, region, at, [] {});
    else if (region.op->op == Op::grid_sample)
      write_grid_sample(e, region, at);
    else
      write_roi_align(e, region, at);
    emit_epilogue(e, region, at, {"result"});
    e.close();
    draft.kernels.push_back(e.finish([y, threads](const Facts& f, artifact::Launch& launch) {
      set_grid(launch, (elements_at(f, y) + threads - 1) / threads, threads);
    }));
    return draft;
  }

  static bool takes_planes(const Workload& workload) {
    const HeavyRegion region = find_heavy(workload, kOps);
    return region.op->op == Op::resize && leading_axes(workload, region) > 0;
  }

  static void begin_result(Emitter& e, ir::ValueId y) {
    const DType dtype = e.graph().value(y).type.dtype;
    e.line(fmt::format("{} result = {};", compute_type(dtype), zero_of(dtype)));
  }

  // A work-item takes one position of `planes` neighbouring planes (what precedes the resized axes):
  // positions and weights, which take longer than the values, serve all of them.
  static KernelDraft planes_kernel(Emitter& e, const Workload& workload, const HeavyRegion& region,
                                   int64_t threads, int64_t planes) {
    const ir::ValueId y = region.result;
    const size_t kept = leading_axes(workload, region);
    const auto rank = workload.graph.value(y).type.shape.size();
    const Extent lead = product_of(e.graph(), y, 0, static_cast<int>(kept));
    const Extent rest = product_of(e.graph(), y, static_cast<int>(kept), static_cast<int>(rank));
    const auto text = [&](const Extent& extent) {
      return e.text(e.index().extent(extent.dim, extent.source));
    };
    e.line(fmt::format("const int group = (int)((th_u32)thread / (th_u32){0}), place = thread - group * {0};",
                       text(rest)));
    e.open(fmt::format("if (group * {} < {})", planes, text(lead)));
    const std::vector<Index> dims = e.dims(y);
    const auto cut = dims.begin() + static_cast<std::ptrdiff_t>(kept);
    Coords at = e.index().split(e.index().var("plane", lead.dim), {dims.begin(), cut});
    for (const Index i : e.index().split(e.index().var("place", rest.dim), {cut, dims.end()}))
      at.push_back(i);
    write_resize(e, region, at, [&] {
      e.line(fmt::format("const int last = th_min_int(group * {0} + {0}, {1});", planes, text(lead)));
      e.open(fmt::format("for (int plane = group * {}; plane < last; ++plane)", planes));
      begin_result(e, y);
    });
    emit_epilogue(e, region, at, {"result"});
    e.close();
    e.close();
    return e.finish([lead, rest, threads, planes](const Facts& f, artifact::Launch& launch) {
      const int64_t items = (lead.source(f) + planes - 1) / planes * rest.source(f);
      set_grid(launch, (items + threads - 1) / threads, threads);
    });
  }
};

}  // namespace

const Family& resize_family() {
  static const Resize kFamily;
  return kFamily;
}

}  // namespace thrice::family
