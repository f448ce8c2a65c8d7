#include "flow/optimize.h"

#include "flow/optimize_run.h"

namespace thrice::flow {

OptimizeReport optimize(const OptimizeRequest& request) {
  OptimizeRun run(request);
  run.import_model();
  run.bind_extents();
  run.leave_out_padding();
  run.plan();
  run.fit_memory_budget();
  if (run.runs()) {
    run.prepare_trials();
    run.check_defaults();
    run.build_original();
    const bool searches = run.searches();
    if (!searches) run.choose();
    // As soon as there can be one: what follows may be stopped at any time.
    run.release_early(searches);
    if (searches) {
      run.tune();
      run.choose();
    }
    run.prove();
    run.time();
  } else {
    run.build_unproved();
  }
  run.release();
  return run.take_report();
}

}  // namespace thrice::flow
