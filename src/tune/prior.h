// What is expected of configurations before any trial here, learned from other devices and shapes.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tune/critic/mlp.h"
#include "tune/space.h"

namespace thrice::tune {

class Prior {
 public:
  virtual ~Prior() = default;
  // For each point a number that grows with the cost: the logarithm of its cost over the best, squeezed
  // (squeezed_cost). Only differences within a space mean anything.
  virtual std::vector<float> expected(const Space& space, const std::vector<Point>& points) const = 0;
  // What was measured as best where things were most like here, best first; legal here, each once.
  virtual std::vector<Point> examples(const Space& space) const {
    (void)space;
    return {};
  }
};

// tanh of cost above best: near the best it is the difference itself; what is e times slower is all alike.
float squeezed_cost(double cost, double best);

// Facts of a workload and its device, by versioned name ("flops", "compute_units", ...), as logarithms.
using Context = std::map<std::string, double>;
std::string context_text(const Context& context);  // "flops=30.1 ..."
Context parse_context(const std::string& text);    // what is no number is left out

// Measured schedules that a net keeps of each task, and that an agent tries of all of them.
constexpr size_t kExamples = 3;

// One configuration that was measured somewhere.
struct Sample {
  artifact::Schedule schedule;
  bool ok = false;
  double cost = 0;  // natural logarithm
};
// Samples that may be compared: one workload, shape and device.
struct Task {
  std::string group;  // what shares parameters: a family, or the kernel of recorded spaces
  Context context;
  std::vector<Sample> samples;
};

// The value networks of one group.
class GroupNet {
 public:
  GroupNet() = default;
  struct TrainOptions {
    int members = 2;
    int steps = 4000;  // of Adam, 64 samples each
    float learning_rate = 0.003f;
    uint64_t seed = 1;
  };
  // All tasks are of one group. Deterministic for a seed.
  static GroupNet train(const std::vector<const Task*>& tasks, const TrainOptions& options);
  const std::string& group() const { return group_; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  size_t tasks() const { return tasks_; }
  size_t samples() const { return samples_; }
  std::vector<float> expected(const std::vector<artifact::Schedule>& schedules, const Context& context) const;
  // The fastest schedules that were measured: the best of each task, nearest context first, then the second
  // of each, ...
  std::vector<artifact::Schedule> examples(const Context& context) const;
  // False where all it learned is of CPUs and this is none, or the other way round.
  bool covers(const Context& context) const;

  std::string str() const;  // lines of text; numbers as 16-bit floats in base64
  static GroupNet parse(const std::vector<std::string>& lines, size_t& at);  // throws kCorrupt with the line

 private:
  void write(const artifact::Schedule& schedule, const Context& context, float* column) const;
  std::string group_;
  std::vector<std::string> inputs_;  // "p:tile_m" a parameter's logarithm, "d:tile_m" its power of two,
                                     // "t:matmul/mma" a tactic, "c:flops" a fact
  std::vector<float> mean_, scale_;
  std::vector<Mlp> members_;
  struct Example {
    Context context;
    std::vector<artifact::Schedule> best;  // ascending by time; at most kExamples
  };
  std::vector<Example> examples_;  // by task; tasks without one that worked are left out
  size_t tasks_ = 0, samples_ = 0;
};

class NetPrior : public Prior {
 public:
  NetPrior(std::shared_ptr<const GroupNet> net, Context context)
      : net_(std::move(net)), context_(std::move(context)) {}
  std::vector<float> expected(const Space& space, const std::vector<Point>& points) const override;
  std::vector<Point> examples(const Space& space) const override;

 private:
  std::shared_ptr<const GroupNet> net_;
  Context context_;
};

// A trained agent: nets by group. The file is text; docs/agent.md.
class Knowledge {
 public:
  static constexpr int kFeatureVersion = 1;  // meaning of inputs; other versions are refused
  std::vector<std::shared_ptr<const GroupNet>> nets;
  std::shared_ptr<const GroupNet> find(const std::string& group) const;  // nullptr: nothing is known of it
  std::string str() const;
  static Knowledge parse(const std::string& text, const std::string& name);  // throws kCorrupt, kUnsupported
  static const Knowledge& shipped();                                         // what this program carries
};

// Nets of every group with at least so many samples: from fewer a network learns noise. CPUs and others count
// by themselves: what has fewer is left out.
constexpr size_t kFewest = 64;
Knowledge train_knowledge(const std::vector<Task>& tasks, const GroupNet::TrainOptions& options);

}  // namespace thrice::tune
