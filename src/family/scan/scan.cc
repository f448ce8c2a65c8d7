#include "family/scan/scan.h"

#include <fmt/format.h>

#include "family/choices.h"
#include "family/direct.h"
#include "family/scalar.h"
#include "family/scan/scan_block.h"
#include "ir/delta_rule.h"

namespace thrice::family {

namespace {

class ScanFamily final : public DirectFamily {
 public:
  std::string_view name() const override { return "scan"; }
  // `block` where lines follow the memory; a line a work-item is faster where lines are very short.
  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override {
    const ir::Node& node = core_node(workload.graph);
    const Facts all = ir::bind(workload.graph, facts);
    const int64_t n = extent_at(all, node.inputs[0], static_cast<int>(node.int_attr("axis")));
    if (n < 64 || !takes_blocks(workload, device))
      return DirectFamily::default_schedule(workload, facts, device);
    return {"scan", "block", {{"threads", n >= 2048 ? 256 : n >= 512 ? 128 : 32}}};
  }
  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override {
    ScheduleSpace space = DirectFamily::space(workload, facts, device);
    if (takes_blocks(workload, device))
      space.tactics.push_back({"scan", "block", {{"threads", {32, 64, 128, 256, 512}}}});
    return space;
  }
  Refusal illegal(const Workload& workload, const Schedule& schedule,
                  const DeviceSpec& device) const override {
    if (schedule.tactic != "block") return DirectFamily::illegal(workload, schedule, device);
    const int64_t threads = schedule.get("threads");
    if (!takes_blocks(workload, device)) return "a block a line is written for CUDA and the last axis";
    if (!is_power_of_two(threads) || threads < 32) return "threads are a power of two from 32 on";
    return refuse_device(workload, device, threads, threads);
  }
  ProgramText emit(const Workload& workload, const Schedule& schedule,
                   const DeviceSpec& device) const override {
    return schedule.tactic == "block" ? block(workload, schedule)->text()
                                      : DirectFamily::emit(workload, schedule, device);
  }
  LaunchPlan launch(const Workload& workload, const Schedule& schedule,
                    const std::vector<Fact>& facts) const override {
    return schedule.tactic == "block" ? block(workload, schedule)->launch(facts)
                                      : DirectFamily::launch(workload, schedule, facts);
  }

 protected:
  std::set<ir::Op> core() const override { return {ir::Op::scan_sum}; }
  void build(ProgramDraft& draft, const ir::Node& node, int64_t threads) const override {
    if (ir::is_delta_rule(node)) throw NotMatched{"a delta rule has a family of its own"};
    Emitter e(draft, "scan0");
    const ir::ValueId x = node.inputs[0];
    const auto& type = e.graph().value(x).type;
    const auto axis = static_cast<size_t>(node.int_attr("axis"));
    const std::string kind = node.string_attr("kind", "sum");
    std::vector<Index> dims = e.dims(x);
    ir::Dim lines(1);
    for (size_t a = 0; a < dims.size(); ++a)
      if (a != axis) lines = lines * type.shape[a];
    const Source count = [x, axis](const Facts& f) {
      int64_t n = 1;
      const auto& shape = f[static_cast<size_t>(x)].type.shape;
      for (size_t a = 0; a < shape.size(); ++a)
        if (a != axis) n *= shape[a].value();
      return n;
    };
    const std::string n = e.text(dims[axis]);
    const Index i = open_items(e, lines, e.index().extent(lines, count), threads);
    dims[axis] = e.constant(1);
    Coords at = e.index().split(i, dims);
    e.line(fmt::format("{} acc = {};", compute_type(type.dtype), neutral(kind, type.dtype)));
    const Index j = e.open_loop("0", n, "1", type.shape[axis]);
    at[axis] = j;
    if (node.int_attr("reverse", 0) != 0) at[axis] = e.declare_int(fmt::format("{} - 1 - {}", n, e.text(j)));
    const std::string next = e.declare(type.dtype, combine(kind, type.dtype, "acc", e.value(x, at)));
    e.store(0, at, node.int_attr("exclusive", 0) != 0 ? "acc" : next);
    e.line(fmt::format("acc = {};", next));
    e.close();
    draft.kernels.push_back(finish_items(e, count, threads));
  }

 private:
  bool takes_blocks(const Workload& workload, const DeviceSpec& device) const {
    return device.api == target::Api::kCuda && !refuse_draft([&] {
             ProgramDraft draft(workload);
             scan_block_kernel(draft, core_node(draft.graph()), 32);
           });
  }
  std::shared_ptr<const ProgramDraft> block(const Workload& workload, const Schedule& schedule) const {
    return draft_of(workload, schedule, [&](ProgramDraft& d) {
      d.kernels.push_back(scan_block_kernel(d, core_node(d.graph()), schedule.get("threads")));
    });
  }
};

}  // namespace

const Family& scan_family() {
  static const ScanFamily kFamily;
  return kFamily;
}

}  // namespace thrice::family
