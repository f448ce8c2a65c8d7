#include "hardware/sampler.h"

#include <algorithm>
#include <chrono>

namespace thrice::hardware {

Sampler::Sampler(std::unique_ptr<Source> source, double interval_ms, size_t capacity)
    : source_(std::move(source)),
      interval_ms_(interval_ms),
      capacity_(capacity),
      thread_([this] { loop(); }) {}

Sampler::~Sampler() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Sampler::loop() {
  const auto interval = std::chrono::duration<double, std::milli>(interval_ms_);
  auto due = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    Snapshot snapshot = source_->sample();
    lock.lock();
    ring_.push_back(std::move(snapshot));
    if (ring_.size() > capacity_) ring_.pop_front();
    changed_.notify_all();
    // On a grid of time: sampling itself does not stretch the interval, unless it takes longer than one.
    const auto now = std::chrono::steady_clock::now();
    due = std::max(due + std::chrono::duration_cast<std::chrono::steady_clock::duration>(interval), now);
    changed_.wait_until(lock, due, [this] { return stopping_; });
  }
}

Snapshot Sampler::latest() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !ring_.empty(); });
  return ring_.back();
}

Snapshot Sampler::next(double time_us) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !ring_.empty() && ring_.back().time_us > time_us; });
  return *std::find_if(ring_.begin(), ring_.end(), [&](const Snapshot& s) { return s.time_us > time_us; });
}

std::vector<Snapshot> Sampler::since(double time_us) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Snapshot> found;
  for (const Snapshot& s : ring_)
    if (s.time_us > time_us) found.push_back(s);
  return found;
}

}  // namespace thrice::hardware
