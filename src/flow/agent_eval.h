// `thrice agent eval`: agents side by side on recorded spaces, with the community's score.
#pragma once
#include <string>
#include <vector>

#include "flow/progress.h"
#include "tune/evaluate.h"
#include "tune/score.h"

namespace thrice::flow {

struct EvalRequest {
  std::string spaces;  // folder or file (tune/recorded.h); "synthetic": the space of 4.7 million
  // NAME[:FLAG...]: no_policy, no_crossover, no_local, no_mask, no_race, transfer (nets trained on the other
  // spaces with the same parameters; spaces without such are left out), KNOB=NUMBER.
  std::vector<std::string> agents = {"random", "greedy", "genetic",     "annealing",
                                     "value",  "ppo",    "actor_critic"};
  int64_t repeats = 32, trials = 500;
  double noise = 0;  // relative
  uint64_t seed = 1;
  int jobs = 1;  // threads
  Listener listener;
};

struct AgentOnSpace {
  std::string agent, space;
  int64_t budget = 0;                                         // trials over which it is scored
  tune::Interval score, at_50, at_100, at_500, trials_to_95;  // 95% intervals; best/optimum after so many
  double reached = 0;                 // share of the runs that got to 95% of the optimum
  double cpu_s = 0;                   // mean of a run
  std::vector<int64_t> moments;       // of the curve
  std::vector<tune::Interval> curve;  // best/optimum there
};
struct AgentTotal {
  std::string agent;
  int64_t spaces = 0;
  tune::Interval score, at_50, at_100, at_500, trials_to_95;
  double reached = 0, cpu_s = 0;
};
struct SpaceFacts {
  std::string name;
  int64_t configurations = 0, failing = 0;
  double optimum_ms = 0, median_ms = 0;
  std::vector<std::pair<std::string, double>> importance;  // share of the variance of log time, largest first
};
struct EvalReport {
  int64_t repeats = 0, trials = 0;
  double noise = 0;
  uint64_t seed = 1;
  std::vector<SpaceFacts> spaces;
  std::vector<AgentOnSpace> results;
  std::vector<AgentTotal> totals;  // in the order of the request
  std::string to_json() const;     // infinite trials are null
};

// Errors: kInvalidArgument (agent, flag, numbers), kNotFound, kCorrupt; kCancelled when stopped.
EvalReport evaluate_agents(const EvalRequest& request);

// First-order shares: how much of the variance of log time each parameter's mean explains.
std::vector<std::pair<std::string, double>> importance_of(const tune::RecordedSpace& space);

// Random search over the knobs of genetic and annealing on each half of the spaces: text of
// data/agent/rivals.txt. tries: settings looked at an agent and half.
std::string tune_rivals(const std::vector<tune::RecordedSpace>& spaces, int64_t tries, int64_t repeats,
                        uint64_t seed, const Listener& listener);

}  // namespace thrice::flow
