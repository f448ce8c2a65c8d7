#include "flow/in_place.h"

#include <fmt/format.h>

#include "exec/in_place.h"
#include "flow/memory_budget.h"

namespace thrice::flow {

void write_in_place(const std::shared_ptr<const ir::Graph>& graph, const ir::Bindings& bindings,
                    artifact::Plan& plan, std::map<std::string, Tuned>& results,
                    std::vector<std::string>& notes) {
  const auto schedules = exec::in_place_schedules(graph, plan, bindings);
  if (schedules.empty()) return;
  artifact::Plan shared = plan;
  exec::set_schedules(shared, schedules);
  const int64_t saved = total_memory(graph, plan, bindings) - total_memory(graph, shared, bindings);
  if (saved <= 0) return;
  plan = std::move(shared);
  for (const auto& [hash, schedule] : schedules)
    if (const auto it = results.find(hash); it != results.end()) {
      // The trial's time and error are the same kernel's, but for what the compiler knows of pointers.
      if (it->second.default_schedule.family.empty()) it->second.default_schedule = it->second.schedule;
      it->second.schedule = schedule;
    }
  notes.push_back(fmt::format("{} regions write over an operand that nothing reads later: {} bytes less",
                              schedules.size(), saved));
}

}  // namespace thrice::flow
