// Processes beside the runner that build and launch coming candidates once, on CPU devices: drivers compile
// at a kernel's first launch and keep the result on disk, where the runner finds it. What fails there fails
// in the runner again, where it is judged. What takes seconds of processor time (a kernel that hangs) is
// given up and left to the runner and its limits.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "measure/place.h"
#include "worker/child.h"
#include "worker/limits.h"

namespace thrice::worker {

// Members from one thread at a time. Each process has a thread of its own that starts it and speaks to it.
class Ahead {
 public:
  Ahead(std::string executable, std::vector<std::string> words, int64_t memory_bytes, int count,
        const Limits& limits);
  ~Ahead();
  // What is coming, most urgent first, before what waited until now. Does not wait.
  void submit(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
              const std::vector<measure::Contender>& coming);
  // Takes a candidate off the list; where it is under way, waits for its end.
  void wait_for(const std::string& key);

  size_t count() const { return seats_.size(); }
  // Between begin and end the processes stand still (SIGSTOP): somebody measures. `ahead` may be null.
  class Pause {
   public:
    explicit Pause(Ahead* ahead) : ahead_(ahead) {}
    ~Pause() { end(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    void begin() { halt(true); }
    void end() { halt(false); }

   private:
    void halt(bool still) {
      if (ahead_ && still != still_) ahead_->halt(still);
      still_ = still;
    }
    Ahead* ahead_;
    bool still_ = false;
  };
  int64_t built() const;  // candidates that went through

 private:
  struct Coming {
    std::string key, workload_key;
    std::vector<std::byte> workload, request;
  };
  struct Seat {
    std::string key;  // of what is under way; "" = idle
    pid_t pid = -1;
  };
  void loop(Seat& seat);
  bool serve(Child& child, const Coming& coming) const;  // false: the process is of no more use
  void halt(bool still);
  bool is_under_way(const std::string& key) const;  // mutex_ is held

  const std::string executable_;
  const std::vector<std::string> words_;
  const int64_t memory_bytes_;
  const Limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Coming> waiting_;     // guarded by mutex_, as all below
  std::vector<Seat> seats_;        // never resized once threads run
  std::vector<std::string> done_;  // keys: none is built twice
  int64_t built_ = 0;
  bool halted_ = false, stopping_ = false;
  std::vector<std::thread> threads_;  // last: they start when all else is there
};

}  // namespace thrice::worker
