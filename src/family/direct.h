// Families with one tactic, `direct`: a work-item a line or an element, loops inside, nothing shared.
#pragma once
#include "family/emitter.h"

namespace thrice::family {

class DirectFamily : public Family {
 public:
  Refusal match(const Workload& workload) const override;
  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override;
  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override;
  Refusal illegal(const Workload& workload, const Schedule& schedule,
                  const DeviceSpec& device) const override;
  ProgramText emit(const Workload& workload, const Schedule& schedule,
                   const DeviceSpec& device) const override;
  LaunchPlan launch(const Workload& workload, const Schedule& schedule,
                    const std::vector<Fact>& facts) const override;

 protected:
  // The operators that the family is about; a workload has exactly one of them, the producer of every output.
  virtual std::set<ir::Op> core() const = 0;
  // Writes the kernels around `node`. Throws NotMatched.
  virtual void build(ProgramDraft& draft, const ir::Node& node, int64_t threads) const = 0;
  // Opens `if (i < count)` over a flat work-item number; the Index is bounded by `bound`.
  static Index open_items(Emitter& e, const ir::Dim& bound, Index count, int64_t threads);
  static KernelDraft finish_items(Emitter& e, Source count, int64_t threads);
  // Position of `value` among the graph's outputs; -1 when it is none.
  static int output_of(const ir::Graph& graph, ir::ValueId value);
  const ir::Node& core_node(const ir::Graph& graph) const;
};

}  // namespace thrice::family
