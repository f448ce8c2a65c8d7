// What a long job tells while it runs, and how it is asked to stop.
#pragma once
#include <functional>
#include <string>

namespace thrice::flow {

struct Progress {
  std::string phase;            // "import", "plan", "tune", ...
  std::string region;           // what is being worked on; may be empty
  int64_t done = 0, total = 0;  // trials or items of this phase; total 0 = unknown
  double speedup = 0;           // estimated from regions so far; 0 = not known yet
  double seconds_left = -1;     // -1 = not known
};

// Both may be empty. `progress` is called from the working thread, at most a few hundred times a second.
struct Listener {
  std::function<void(const Progress&)> progress;
  std::function<bool()> cancelled;  // true: stop at the next safe point and keep the best so far

  void tell(const Progress& p) const {
    if (progress) progress(p);
  }
  bool stop() const { return cancelled && cancelled(); }
};

}  // namespace thrice::flow
