// Runs the phases of a long command: each is announced, and its time is kept.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "flow/progress.h"

namespace thrice::flow {

struct PhaseTime {
  std::string phase;
  double seconds = 0;
};

class Phases {
 public:
  Phases(std::vector<PhaseTime>& times, const Listener& listener) : times_(times), listener_(listener) {}
  // What `body` returns. Its time is kept where it throws too.
  template <class Body>
  auto run(const std::string& name, Body body) {
    listener_.tell({name, "", 0, 0, 0, -1});
    struct Stop {
      std::vector<PhaseTime>& times;
      const std::string& name;
      double begin;
      ~Stop() { times.push_back({name, (monotonic_us() - begin) / 1e6}); }
    } stop{times_, name, monotonic_us()};
    return body();
  }

 private:
  std::vector<PhaseTime>& times_;
  const Listener& listener_;
};

}  // namespace thrice::flow
