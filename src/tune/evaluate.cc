#include "tune/evaluate.h"

#include <cmath>
#include <ctime>
#include <limits>

namespace thrice::tune {
namespace {
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
}  // namespace

Run run_agent(const std::string& name, const Space& space, const std::function<double(const Point&)>& time,
              const RunOptions& options) {
  const double begin = thread_seconds();
  const auto agent = make_agent(name, space, options.agent);
  Rng noise(options.agent.seed * 7919 + 13);
  Run run;
  double looks = std::numeric_limits<double>::infinity(), is = looks;
  while (static_cast<int64_t>(run.best.size()) < options.trials) {
    const std::vector<Point> asked = agent->ask(1);
    if (asked.empty()) break;
    const double truth = time(asked[0]);
    Told told{!std::isnan(truth), 0};
    if (told.ok) {
      const double seen = truth * std::exp(options.noise * noise.normal());
      told.cost = std::log(seen);
      if (seen < looks) {
        looks = seen;
        is = truth;
      }
    }
    agent->tell(asked[0], told);
    agent->learn();
    run.best.push_back(is);
  }
  run.cpu_s = thread_seconds() - begin;
  return run;
}

Run run_agent(const std::string& name, const RecordedSpace& space, const RunOptions& options) {
  return run_agent(
      name, space.space,
      [&](const Point& point) {
        const int64_t place = space.space.find(point);
        return place < 0 ? std::numeric_limits<double>::quiet_NaN() : space.times[static_cast<size_t>(place)];
      },
      options);
}

}  // namespace thrice::tune
