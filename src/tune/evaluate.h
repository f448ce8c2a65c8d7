// Agents on recorded spaces: what they would have found, without a device.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tune/agent.h"
#include "tune/recorded.h"
#include "tune/score.h"

namespace thrice::tune {

struct RunOptions {
  int64_t trials = 500;
  double noise = 0;  // relative standard deviation of a measurement
  AgentOptions agent;
};

struct Run {
  std::vector<double> best;  // by trial: true time of what looked fastest so far; infinity: nothing ran yet
  double cpu_s = 0;          // of the agent: thread time, look-ups included
};

// One search with options.agent.seed.
Run run_agent(const std::string& agent, const RecordedSpace& space, const RunOptions& options);
// The same on any space. time: NaN where a point does not run.
Run run_agent(const std::string& agent, const Space& space, const std::function<double(const Point&)>& time,
              const RunOptions& options);

}  // namespace thrice::tune
