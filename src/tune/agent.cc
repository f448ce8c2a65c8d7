#include "tune/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thrice/status.h>

#include <algorithm>

#include "tune/agents/greedy.h"
#include "tune/agents/random.h"

namespace thrice::tune {

std::vector<std::string> agent_names() { return {"greedy", "random"}; }

std::unique_ptr<Agent> make_agent(const std::string& name, const LegalSpace& space, uint64_t seed) {
  if (name == "random") return std::make_unique<RandomAgent>(space, seed);
  if (name == "greedy") return std::make_unique<GreedyAgent>(space, seed);
  require_agent(name);
  throw Error(Code::kInternal, fmt::format("agent '{}' has a name and no maker", name));
}

void require_agent(const std::string& name) {
  const std::vector<std::string> names = agent_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(Code::kInvalidArgument,
                fmt::format("unknown agent '{}'; known: {}", name, fmt::join(names, ", ")));
}

}  // namespace thrice::tune
