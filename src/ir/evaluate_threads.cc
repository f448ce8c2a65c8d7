#include "ir/evaluate_threads.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace thrice::ir {
namespace {

std::atomic<int> wanted{0};

int cores() {
  static const int count = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 64);
  return count;
}

struct Loop {
  const std::function<void(int64_t)>* body;
  int64_t parts, next = 0, done = 0;
  int helpers = 0;
};

class Pool {
 public:
  void run(Loop& loop) {
    std::unique_lock<std::mutex> lock(mutex_);
    const int most = loop_threads() - 1;
    while (started_ < most) {
      std::thread([this] { help(); }).detach();  // they end with the process
      ++started_;
    }
    loops_.push_back(&loop);
    for (int64_t k = std::min<int64_t>(most, loop.parts - 1); k > 0; --k) waiting_.notify_one();
    while (loop.next < loop.parts) do_part(loop, lock);
    finished_.wait(lock, [&] { return loop.done == loop.parts; });
  }

 private:
  void do_part(Loop& loop, std::unique_lock<std::mutex>& lock) {
    const int64_t part = loop.next++;
    if (loop.next == loop.parts) std::erase(loops_, &loop);
    lock.unlock();
    (*loop.body)(part);
    lock.lock();
    if (++loop.done == loop.parts) finished_.notify_all();
  }
  // The newest loop first: an inner one ends before the outer one goes on.
  Loop* newest_open() const {
    for (auto it = loops_.rbegin(); it != loops_.rend(); ++it)
      if ((*it)->helpers < loop_threads() - 1) return *it;
    return nullptr;
  }
  void help() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      Loop* loop = nullptr;
      waiting_.wait(lock, [&] { return (loop = newest_open()) != nullptr; });
      ++loop->helpers;
      // Alive as long as the lock is held after a part of it: its caller has not seen the end yet.
      while (loop->next < loop->parts) do_part(*loop, lock);
    }
  }

  std::mutex mutex_;
  std::condition_variable waiting_, finished_;
  std::deque<Loop*> loops_;  // with parts that nobody has taken
  int started_ = 0;
};

Pool& pool() {
  static Pool& one = *new Pool;  // never destroyed: its threads may outlive main
  return one;
}

}  // namespace

int loop_threads() {
  const int count = wanted.load(std::memory_order_relaxed);
  return count > 0 ? count : cores();
}
void set_loop_threads(int count) { wanted = count; }

void run_parts(int64_t parts, const std::function<void(int64_t)>& f) {
  if (parts <= 0) return;
  if (parts == 1 || loop_threads() <= 1) {
    for (int64_t p = 0; p < parts; ++p) f(p);
    return;
  }
  Loop loop{&f, parts};
  pool().run(loop);
}

}  // namespace thrice::ir
