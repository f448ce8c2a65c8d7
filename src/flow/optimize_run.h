// One `optimize` on its way: what its phases hand to each other. flow/optimize.cc calls them in order.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "flow/build.h"
#include "flow/lengths.h"
#include "flow/measured_cost.h"
#include "flow/open_target.h"
#include "flow/optimize.h"
#include "flow/other_binaries.h"
#include "flow/phases.h"
#include "flow/tuning.h"
#include "flow/whole_model.h"
#include "worker/race_check.h"

namespace thrice::flow {

class OptimizeRun {
 public:
  // Opens the target. `request` must outlive this. An unknown agent or device is told here.
  explicit OptimizeRun(const OptimizeRequest& request);

  // optimize_plan.cc: from the file to plans with rule-chosen schedules. Throw kCancelled where the user
  // stops: there is nothing to keep yet.
  void import_model();
  void bind_extents();
  void leave_out_padding();  // --packed; nothing without
  void plan();
  void fit_memory_budget();  // --memory-budget; nothing without

  // optimize_tune.cc: schedules.
  bool runs() const { return target_.runs; }  // false: kernels are built for the target, nothing can be run
  void prepare_trials();
  void check_defaults();
  void build_original();
  // Whether schedules are searched for, or chosen by length; asked after the defaults were checked.
  bool searches() const { return tunes() || !lengths_.symbol.empty(); }
  void tune();
  void choose();

  // optimize_prove.cc: what is deployed.
  // Before a search, which then has the memory of what was made for it.
  void release_early(bool searches);
  void prove();
  void time();
  void build_unproved();  // where nothing runs
  void release();

  OptimizeReport take_report() { return std::move(report_); }

 private:
  bool tunes() const { return request_.tune && !listener_.stop(); }
  void stop_if_cancelled() const;
  void open_store();
  void probe();
  // `built`: null, or gets every program.
  std::unique_ptr<exec::Executor> make_executor(const artifact::Plan& plan,
                                                std::vector<BuiltProgram>* built) const;
  void set_planned();
  void prove_deployed(bool with_races);
  void check_whole_model();
  void remember_best();
  void report_explored();
  void write_release();

  const OptimizeRequest& request_;
  const Settings& settings_;
  const Listener& listener_;
  const double begun_us_;
  OptimizeReport report_;
  Phases phases_;
  const OpenedTarget target_;
  const backend::DevicePtr device_;
  target::DeviceSpec spec_;  // with peaks once they were probed

  std::shared_ptr<ir::Graph> graph_;
  double imported_us_ = 0;
  ir::Bindings bindings_, bindings_of_inputs_;  // the first with the number of rows of a packed model
  LengthSpec lengths_;                          // no symbol: one length
  PaddedModel padded_;                          // no graph: nothing is packed

  std::shared_ptr<jit::KernelCache> cache_;
  std::optional<measure::TrialRunner> runner_;
  std::unique_ptr<store::Store> store_;
  std::string environment_;  // key in the store
  std::optional<MeasuredCost> costs_;
  plan::PlanResult original_, planned_;
  std::map<std::string, plan::PlannedWorkload> known_;  // of both

  std::optional<worker::RaceChecker> races_;
  std::unique_ptr<store::TrialLog> record_;
  std::optional<DeviceGuard> guard_;
  std::map<std::string, Tuned> results_;
  TuningContext context_;
  double began_us_ = -1;   // of the budget
  double paused_us_ = -1;  // from here to the search the budget's clock stands
  std::unique_ptr<exec::Executor> plain_;
  std::vector<LengthPoint> points_;
  LengthBuckets buckets_;

  OtherBinaries others_;
  std::vector<BuiltProgram> built_;
  std::unique_ptr<exec::Executor> best_;
  ModelCheck check_;
  std::string checked_plan_;  // digest
};

}  // namespace thrice::flow
