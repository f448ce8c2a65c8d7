#include "family/attention/attention.h"

#include <fmt/format.h>

#include "family/attention/attention_form.h"
#include "family/attention/attention_mma.h"
#include "family/attention/attention_row.h"
#include "family/attention/attention_split.h"
#include "family/attention/attention_wgmma.h"
#include "family/choices.h"
#include "family/drafted.h"
#include "family/scalar.h"

namespace thrice::family {

namespace {

constexpr int64_t kMostRowWidth = 256;  // sums that a work-item of `row` keeps

class Attention final : public DraftedFamily {
 public:
  std::string_view name() const override { return "attention"; }

  Refusal match(const Workload& workload) const override {
    return refuse_draft([&] {
      if (find_attention(workload).width > kMostRowWidth)
        throw NotMatched{fmt::format("heads of more than {} elements", kMostRowWidth)};
    });
  }

  Schedule default_schedule(const Workload& workload, const std::vector<Fact>& facts,
                            const DeviceSpec& device) const override {
    const AttentionForm form = find_attention(workload);
    const Facts bound = ir::bind(workload.graph, facts);
    // wgmma is chosen by search, which verifies and times it: as a tactic it has not run on a card yet.
    // So is mma for packed sequences.
    if (form.has_window()) return row_schedule();
    if (wants_attention_split(form, bound, device)) {
      const Schedule split = default_attention_split(workload, form, bound, device);
      if (!refuse_attention_split(workload, form, split, device)) return split;
    }
    const Schedule mma = default_attention_mma(form, bound, device);
    return refuse_attention_mma(workload, form, mma, device) ? row_schedule() : mma;
  }

  ScheduleSpace space(const Workload& workload, const std::vector<Fact>& facts,
                      const DeviceSpec& device) const override {
    ScheduleSpace space;
    const AttentionForm form = find_attention(workload);
    const Facts bound = ir::bind(workload.graph, facts);
    Schedule wgmma = default_attention_wgmma(workload, form, bound, device), narrow = wgmma;
    narrow.set("tile_n", 64);  // what wide heads leave room for
    if (!refuse_attention_wgmma(workload, form, wgmma, device) ||
        !refuse_attention_wgmma(workload, form, narrow, device))
      space.tactics.push_back({"attention", "wgmma", attention_wgmma_parameters(device)});
    const Schedule mma = default_attention_mma(form, bound, device);
    if (!refuse_attention_mma(workload, form, mma, device))
      space.tactics.push_back({"attention", "mma", attention_mma_parameters()});
    const Schedule split = default_attention_split(workload, form, bound, device);
    if (may_split_attention(form, bound) && !refuse_attention_split(workload, form, split, device))
      space.tactics.push_back({"attention", "split", attention_split_parameters(workload, form, split)});
    space.tactics.push_back({"attention", "row", {{"threads", {32, 64, 128}}}});
    return space;
  }

  Refusal illegal(const Workload& workload, const Schedule& schedule,
                  const DeviceSpec& device) const override {
    if (schedule.family == "attention" && schedule.tactic == "row")
      return refuse_device(workload, device, schedule.get("threads"), 0);
    if (schedule.family == "attention" && schedule.tactic == "mma")
      return refuse_attention_mma(workload, find_attention(workload), schedule, device);
    if (schedule.family == "attention" && schedule.tactic == "split")
      return refuse_attention_split(workload, find_attention(workload), schedule, device);
    if (schedule.family == "attention" && schedule.tactic == "wgmma")
      return refuse_attention_wgmma(workload, find_attention(workload), schedule, device);
    return fmt::format("attention has no tactic '{}'", schedule.tactic);
  }

 private:
  static Schedule row_schedule() { return {"attention", "row", {{"threads", 64}}}; }
  ProgramDraft make_draft(const Workload& workload, const Schedule& schedule, bool) const override {
    ProgramDraft draft(workload);
    const AttentionForm form = find_attention(workload);
    if (schedule.tactic == "wgmma")
      emit_attention_wgmma(draft, form, schedule);
    else if (schedule.tactic == "mma")
      emit_attention_mma(draft, form, schedule);
    else if (schedule.tactic == "split")
      emit_attention_split(draft, form, schedule);
    else
      emit_attention_row(draft, form, schedule);
    return draft;
  }
};

}  // namespace

const Family& attention_family() {
  static const Attention kFamily;
  return kFamily;
}

}  // namespace thrice::family
