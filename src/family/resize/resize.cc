#include "family/resize/resize.h"

#include <fmt/format.h>

#include "family/drafted.h"
#include "family/scalar.h"

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

  ScheduleSpace space(const Workload&, const std::vector<Fact>&, const DeviceSpec&) const override {
    return {{{"resize", "naive", {{"threads", {16, 32, 64, 128, 256}}}}}};
  }

  Refusal illegal(const Workload& workload, const Schedule& s, const DeviceSpec& device) const override {
    if (s.family != "resize" || s.tactic != "naive")
      return fmt::format("resize has no tactic '{}'", s.tactic);
    return refuse_device(workload, device, s.get("threads"), 0);
  }

 private:
  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool) const override {
    ProgramDraft draft(workload);
    const HeavyRegion region = find_heavy(workload, kOps);
    const ir::ValueId y = region.result;
    const int64_t threads = schedule.get("threads");
    Emitter e(draft, fmt::format("{}_naive", ir::op_name(region.op->op)));
    e.line("const int thread = TH_BLOCK * TH_THREADS + TH_THREAD;");
    e.open(fmt::format("if (thread < {})", e.text(e.elements(y))));
    const Coords at =
        e.split(e.index().var("thread", ir::num_elements(workload.graph.value(y).type.shape)), y);
    const DType dtype = workload.graph.value(y).type.dtype;
    e.line(fmt::format("{} result = {};", compute_type(dtype), zero_of(dtype)));
    if (region.op->op == Op::resize)
      write_resize(e, region, at);
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
};

}  // namespace

const Family& resize_family() {
  static const Resize kFamily;
  return kFamily;
}

}  // namespace thrice::family
