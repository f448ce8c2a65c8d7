#include "tune/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thrice/status.h>

#include <algorithm>

#include "tune/agents/annealing.h"
#include "tune/agents/genetic.h"
#include "tune/agents/greedy.h"
#include "tune/agents/model.h"
#include "tune/agents/random.h"

namespace thrice::tune {

std::vector<std::string> agent_names() {
  return {"actor_critic", "annealing", "genetic", "greedy", "ppo", "random", "value"};
}

std::unique_ptr<Agent> make_agent(const std::string& name, const Space& space, const AgentOptions& options) {
  if (name == "random") return std::make_unique<RandomAgent>(space, options.seed);
  if (name == "greedy") return std::make_unique<GreedyAgent>(space, options.seed);
  if (name == "genetic") return std::make_unique<GeneticAgent>(space, options);
  if (name == "annealing") return std::make_unique<AnnealingAgent>(space, options);
  if (name == "value" || name == "actor_critic" || name == "ppo")
    return std::make_unique<ModelAgent>(name, space, options);
  require_agent(name);
  throw Error(Code::kInternal, fmt::format("agent '{}' has a name and no maker", name));
}

void require_agent(const std::string& name) {
  const std::vector<std::string> names = agent_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(Code::kInvalidArgument,
                fmt::format("unknown agent '{}'; known: {}", name, fmt::join(names, ", ")));
}

std::optional<Point> Seen::fresh(Rng& rng) const {
  for (int draw = 0; draw < 50; ++draw) {
    std::optional<Point> point = space_.sample(rng);
    if (point && !has(*point)) return point;
  }
  // Nearly all was seen, or nearly nothing is legal: a space of moderate size is gone through.
  constexpr double kSmall = 50'000;
  if (space_.listed().empty() && space_.product() > kSmall) return std::nullopt;
  std::vector<Point> left;
  for (Point& point : space_.enumerate(static_cast<size_t>(kSmall)))
    if (!has(point)) left.push_back(std::move(point));
  if (left.empty()) return std::nullopt;
  return left[rng.below(left.size())];
}

}  // namespace thrice::tune
