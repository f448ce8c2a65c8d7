// A searcher over schedules: asked for candidates, told what they were worth.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "artifact/measurement.h"
#include "tune/legal_space.h"

namespace thrice::tune {

struct Trial {
  artifact::Schedule schedule;
  artifact::Measurement measurement;
};

// One agent serves one workload. Deterministic for a seed and a sequence of tells.
class Agent {
 public:
  virtual ~Agent() = default;
  virtual std::string name() const = 0;
  // Up to `count` legal schedules not asked before; fewer, or none, when it has nothing more to propose.
  virtual std::vector<artifact::Schedule> ask(int count) = 0;
  virtual void tell(const Trial& trial) = 0;  // failed candidates too: they are data
  virtual void learn() {}                     // after a batch of tells
  virtual void save(std::string& state) const { state.clear(); }
  virtual void load(const std::string& state) { (void)state; }
};

// "random", "greedy". Throws kInvalidArgument with the names there are.
std::unique_ptr<Agent> make_agent(const std::string& name, const LegalSpace& space, uint64_t seed);
std::vector<std::string> agent_names();
void require_agent(const std::string& name);  // throws as make_agent does

}  // namespace thrice::tune
