// Trials in a worker process: a candidate that hangs, faults or kills the driver costs a worker, not the run.
#pragma once
#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

#include "measure/place.h"
#include "worker/ahead.h"
#include "worker/builders.h"
#include "worker/child.h"
#include "worker/limits.h"

namespace thrice::worker {

struct RunnerOptions {
  std::string executable = "/proc/self/exe";  // that takes `worker --device D`
  Limits limits;
  bool fences = true;  // buffers of checks end at unmapped memory, where the device offers it
  int builders = 0;    // processes that compile ahead (CUDA with a kernel cache on disk: builders.h; CPU
                       // devices: ahead.h, where 1 = none and 8 are the most); 0 = one a core
};

// One thread at a time, and always the same: workers die with the thread that started them.
class Runner : public measure::TrialPlace {
 public:
  // `device` says what the worker must find; `cache` is where builders put what they made.
  Runner(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache, RunnerOptions options);
  ~Runner() override;

  measure::TrialResult run(const ir::Workload& workload, measure::Oracle& oracle,
                           const measure::Job& job) override;
  std::vector<measure::Timing> compare(const ir::Workload& workload, measure::Oracle& oracle,
                                       const std::vector<measure::Contender>& contenders,
                                       const measure::TimingOptions& options) override;
  void prepare(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
               const std::vector<measure::Contender>& coming) override;
  void build_later(const std::vector<artifact::KernelSource>& sources) override;
  void fetch(const artifact::KernelSource& source) override;
  target::DeviceSpec probe() override;
  size_t lookahead() const override;
  bool fences() const override { return options_.fences; }
  bool drop_fences() override;
  std::string lost() const override { return lost_; }
  std::vector<std::string> notes() const override;

  // Starts one where none runs, and probes it after a fault. Throws kLaunchFailed where that fails twice:
  // lost() then says why.
  void require_worker();
  // Ends the worker; the next trial starts another.
  void stop() { child_.reset(); }
  pid_t pid() const { return child_ ? child_->pid() : -1; }             // -1: none runs now
  int64_t faults() const { return faults_; }                            // candidates that cost a worker
  int64_t built_ahead() const { return ahead_ ? ahead_->built() : 0; }  // on CPU devices
  int64_t probes() const { return probes_; }                            // honest kernels run in fresh workers

 private:
  struct Ended {
    Code code;
    std::string message;
  };
  // Sends and waits; Ended: the worker is gone (killed where it was late). Throws what the worker failed
  // with.
  std::optional<Ended> ask(Kind kind, const std::vector<std::byte>& body, const ir::Workload& workload,
                           const std::vector<ir::Fact>& facts, double best_us, Message& answer);
  double limit_s(measure::Phase phase, double best_us) const;
  Ended bury(const std::string& late);
  Ended blame(const Ended& ended);  // counts a fault; the next worker is probed
  std::vector<std::string> worker_words() const;
  int64_t memory_limit() const;
  // From the builders, into the cache; nullopt: they do not have it.
  std::optional<BuiltElsewhere> take(const artifact::KernelSource& source);
  void make_ahead();
  void launch();  // without waiting for its first word
  void start();
  void check_health();
  measure::TrialResult run_in_child(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                                    const measure::Job& job);

  backend::DevicePtr device_;
  std::shared_ptr<jit::KernelCache> cache_;
  RunnerOptions options_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<Builders> builders_;  // CUDA
  std::unique_ptr<Ahead> ahead_;        // CPU devices with cores to spare
  bool ready_ = false;                  // child_ has said its first word
  bool suspect_ = false;                // a worker ended badly since the last good answer
  bool dropped_fences_ = false;
  int64_t faults_ = 0, probes_ = 0;
  std::string lost_, last_fault_;
};

}  // namespace thrice::worker
