// One candidate through the whole gate: legality and generation here; build, check, time and the checks of
// the timed launches in a place (measure/place.h). Never throws for a bad candidate: its outcome says what
// went wrong.
#pragma once
#include "measure/place.h"

namespace thrice::measure {

class TrialRunner {
 public:
  // Trials in this process, on the cache's device. One thread at a time.
  TrialRunner(backend::DevicePtr device, std::shared_ptr<jit::KernelCache> cache);
  // Trials wherever `place` makes them; `device` says what text is generated for.
  TrialRunner(backend::DevicePtr device, std::unique_ptr<TrialPlace> place);
  ~TrialRunner();
  TrialResult run(const ir::Workload& workload, const family::Family& family,
                  const artifact::Schedule& schedule, Oracle& oracle, const TrialOptions& options);
  // Times verified schedules of one workload against each other, interleaved.
  std::vector<Timing> compare(const ir::Workload& workload, const family::Family& family,
                              const std::vector<artifact::Schedule>& schedules, Oracle& oracle,
                              const TimingOptions& options);

  // Candidates that will be tried soon: their text goes to where it may be built meanwhile.
  void prepare(const ir::Workload& workload, const family::Family& family, const std::vector<ir::Fact>& facts,
               const std::vector<artifact::Schedule>& schedules);
  void build_later(const std::vector<artifact::KernelSource>& sources) { place_->build_later(sources); }
  void fetch(const artifact::KernelSource& source) { place_->fetch(source); }
  // Where trials run, with what is known of the device afterwards: what is faster is a measuring error.
  target::DeviceSpec probe() { return peaks_ = place_->probe(); }
  // As probe(), with peaks that are known.
  void set_peaks(const target::DeviceSpec& peaks) { peaks_ = peaks; }
  // The text of a schedule: what a stored trial was made with is of use only where it is the same.
  artifact::KernelSource generate(const ir::Workload& workload, const family::Family& family,
                                  const artifact::Schedule& schedule) const;
  bool drop_fences() { return place_->drop_fences(); }
  const TrialPlace& place() const { return *place_; }

 private:
  backend::DevicePtr device_;
  std::unique_ptr<TrialPlace> place_;
  target::DeviceSpec peaks_;
};

}  // namespace thrice::measure
