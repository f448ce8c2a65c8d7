// Processes that compile kernels ahead of their trials, as many as cores: text in, binary out, no device.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/child.h"
#include "worker/limits.h"

namespace thrice::worker {

struct BuiltElsewhere {
  std::optional<artifact::KernelBinary> binary;
  Code code = Code::kOk;  // where there is no binary
  std::string message;
  double ms = 0;
};

// One thread at a time, the one that submits: it starts the processes.
class Builders {
 public:
  // `compiler`: the version that each process must have. count 0: one a core.
  Builders(std::string executable, std::string architecture, std::string compiler, int count,
           const Limits& limits);
  ~Builders();
  int count() const { return count_; }
  // What is coming, most urgent first, before all that waited until now: the next trial's kernel is not built
  // after those of other workloads. Does not wait. A source that is done or under way is ignored.
  void submit(const std::vector<artifact::KernelSource>& coming);
  // What nobody waits for yet: behind all others.
  void submit_last(const std::vector<artifact::KernelSource>& later);
  // Waits until nothing waits or is under way.
  void finish_all();
  // Waits for this source where it is being built; nullopt: never submitted, not begun yet (then it is taken
  // off the list: who asks builds it at once), or taken before.
  std::optional<BuiltElsewhere> take(const std::string& key);

 private:
  struct Seat {
    std::unique_ptr<Child> child;
    std::string key;     // of what it builds; "" = idle
    bool ready = false;  // has said which compiler it has
    double begun_us = 0;
  };
  std::deque<artifact::KernelSource> new_ones(const std::vector<artifact::KernelSource>& sources) const;
  void pump(double deadline_us);  // hands out work; collects answers, waiting for one until the deadline
  bool start(Seat& seat);
  double limit_s(const Seat& seat) const { return seat.ready ? limits_.build_s : limits_.start_s; }
  void collect(Seat& seat);
  void finish(Seat& seat, BuiltElsewhere built);

  const std::string executable_, architecture_, compiler_;
  const int count_;
  const Limits limits_;
  std::vector<Seat> seats_;
  std::deque<artifact::KernelSource> waiting_;
  std::map<std::string, BuiltElsewhere> done_;
  bool broken_ = false;  // builders do not start here: everything is built where it runs
};

}  // namespace thrice::worker
