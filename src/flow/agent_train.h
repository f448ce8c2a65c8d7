// Where trained agents come from: recorded spaces, the store, files of samples; and what is known of a
// workload before its first trial.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "flow/settings.h"
#include "plan/planner.h"
#include "target/device_spec.h"
#include "tune/prior.h"
#include "tune/recorded.h"

namespace thrice::store {
class Store;
}

namespace thrice::flow {

tune::Task task_of(const tune::RecordedSpace& space);
// A net of the spaces that share parameters with `space`, itself left out; null where there are none.
std::shared_ptr<const tune::Prior> prior_without(const std::vector<tune::RecordedSpace>& spaces,
                                                 const tune::RecordedSpace& space);

// Trials of a store by workload, shape and environment; those whose facts the store does not hold (made by an
// older version) are left out.
std::vector<tune::Task> tasks_of_store(const store::Store& store);
// A store (SQLite), a folder or file of recorded spaces, or a file of samples. Errors: kNotFound, kCorrupt.
std::vector<tune::Task> read_tasks(const std::string& path);

// Samples as text, a line each below a line for the task; plain or .gz when read.
std::string tasks_text(const std::vector<tune::Task>& tasks);
std::vector<tune::Task> parse_tasks(const std::string& text, const std::string& name);

// Facts of a workload on a device as the nets see them: logarithms of FLOP, bytes, intensity, extents, and
// the device's limits and peaks.
tune::Context context_of(const plan::PlannedWorkload& workload, const target::DeviceSpec& device);

// The agent file that the settings name, or the one in the program.
tune::Knowledge knowledge_of(const Settings& settings);

}  // namespace thrice::flow
