#include "hardware/sampler.h"

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
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    Snapshot snapshot = source_->sample();
    lock.lock();
    ring_.push_back(std::move(snapshot));
    if (ring_.size() > capacity_) ring_.pop_front();
    changed_.notify_all();
    changed_.wait_for(lock, interval, [this] { return stopping_; });
  }
}

Snapshot Sampler::latest() const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !ring_.empty(); });
  return ring_.back();
}

std::vector<Snapshot> Sampler::since(double time_us) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Snapshot> found;
  for (const Snapshot& s : ring_)
    if (s.time_us > time_us) found.push_back(s);
  return found;
}

}  // namespace thrice::hardware
