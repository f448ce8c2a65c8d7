// A thread that looks at the machine again and again.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "hardware/snapshot.h"

namespace thrice::hardware {

// All members are safe from many threads. The destructor stops the thread.
class Sampler {
 public:
  // Default: every 100 ms, as the monitoring contract says; one minute is kept.
  explicit Sampler(std::unique_ptr<Source> source, double interval_ms = 100, size_t capacity = 600);
  ~Sampler();
  Snapshot latest() const;              // waits for the first one
  Snapshot next(double time_us) const;  // the oldest kept one later than this monotonic time; waits for it
  std::vector<Snapshot> since(double time_us) const;  // later than this monotonic time, oldest first

 private:
  void loop();

  std::unique_ptr<Source> source_;  // used by the thread only
  const double interval_ms_;
  const size_t capacity_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Snapshot> ring_;  // guarded by mutex_
  bool stopping_ = false;      // guarded by mutex_
  std::thread thread_;         // last: starts when all else is there
};

}  // namespace thrice::hardware
