// What tuning learned about an operator, and where that is of use: the best schedules of its nearest
// neighbours.
#pragma once
#include <string>
#include <vector>

#include "library/entry.h"
#include "plan/planner.h"
#include "store/store.h"

namespace thrice::library {

// Keeps the best schedule of a tuned workload with its entry. `network`: the model it was tuned for.
void remember(store::Store& store, const plan::PlannedWorkload& planned, const std::string& network,
              const std::string& environment, const std::string& shape, const artifact::Schedule& schedule,
              double time_us);

struct Neighbour {
  Entry entry;
  double distance = 0;
  std::string environment, shape;
  artifact::Schedule schedule;
  double time_us = 0;
};
// Best schedules of operators nearest to another. Those of devices with the same name and architecture as
// `environment` are kept, read once.
class Memory {
 public:
  Memory(const store::Store& store, std::string environment);
  // Nearest first, each schedule once; the operator itself (same id, environment and shape) is left out, and
  // so is what is farther than kFar: not worth a trial.
  std::vector<Neighbour> neighbours(const Entry& entry, const std::string& shape, size_t most = 2) const;
  size_t size() const { return known_.size(); }

 private:
  std::string environment_;
  std::vector<Neighbour> known_;
};
constexpr double kFar = 6;

}  // namespace thrice::library
