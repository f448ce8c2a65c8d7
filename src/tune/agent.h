// A searcher over configurations: asked for candidates, told what they were worth. Recorded spaces and real
// devices use the same agents.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "tune/space.h"

namespace thrice::tune {

// What a trial was worth: less is better. cost is a natural logarithm (of a time, or weighted logarithms of
// time, throughput and memory), so that a difference of 0.01 is one per cent.
struct Told {
  bool ok = false;  // false: it did not build, did not run, or was wrong
  double cost = 0;
};

// One agent serves one workload. Deterministic for a seed and a sequence of calls.
class Agent {
 public:
  virtual ~Agent() = default;
  virtual std::string name() const = 0;
  // Up to `count` points not asked or told before; fewer, or none, when it has nothing more to propose.
  virtual std::vector<Point> ask(int count) = 0;
  virtual void tell(const Point& point, const Told& told) = 0;  // failed ones too: they are data
  virtual void learn() {}                                       // after a batch of tells
  // How much less than the best so far it expects of what it would propose, as a difference of costs; 0: no
  // gain, or it does not know.
  virtual double expected_gain() const { return 0; }
  // What was learned, as text that load() of an agent of the same name and space takes.
  virtual void save(std::string& state) const { state.clear(); }
  virtual void load(const std::string& state) { (void)state; }
};

// What is expected of configurations before any trial here (tune/prior.h); any thread.
class Prior;

struct AgentOptions {
  uint64_t seed = 1;
  double learning_rate = 0.001;         // of networks
  double exploration_rate = 0.1;        // share of random candidates at the beginning
  std::map<std::string, double> knobs;  // of one kind of agent; what is not there has its default
  std::shared_ptr<const Prior> prior;   // may be null
  double knob(const std::string& name, double otherwise) const {
    const auto it = knobs.find(name);
    return it == knobs.end() ? otherwise : it->second;
  }
};

// Throws kInvalidArgument with the names there are. `space` must outlive the agent.
std::unique_ptr<Agent> make_agent(const std::string& name, const Space& space, const AgentOptions& options);
std::vector<std::string> agent_names();
void require_agent(const std::string& name);  // throws as make_agent does

// What every agent keeps: points that were asked or told, and draws among the others.
class Seen {
 public:
  explicit Seen(const Space& space) : space_(space) {}
  bool add(const Point& point) { return keys_.insert(point_key(point)).second; }  // false: it was there
  bool has(const Point& point) const { return keys_.count(point_key(point)) != 0; }
  // A legal point that was not seen, uniform as Space::sample; nullopt when there is none, or none was found
  // in a space too large to be listed.
  std::optional<Point> fresh(Rng& rng) const;

 private:
  const Space& space_;
  std::unordered_set<uint64_t> keys_;
};

}  // namespace thrice::tune
