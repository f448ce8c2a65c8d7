#include "measure/rotation.h"

#include <algorithm>

namespace thrice::measure {
namespace {

constexpr size_t kMostSets = 32;  // a sample; recording one costs tens of microseconds

size_t round_up(size_t bytes) {
  return (bytes + backend::kAlignment - 1) / backend::kAlignment * backend::kAlignment;
}

}  // namespace

Rotation::Rotation(backend::Device& device, backend::Stream& stream, const Arguments& first,
                   backend::BufferPtr& flush)
    : stream_(stream) {
  const size_t cache = round_up(static_cast<size_t>(device.spec().l2_bytes));
  if (!flush) flush = device.allocate(2 * cache);
  flush_ = flush;
  const std::vector<backend::RecordedLaunch> launches = first.launches(false);
  if (!launches.empty()) home_ = launches.front().buffers;
  size_t bytes = 0;
  for (const backend::BufferSpan& span : home_) bytes += round_up(std::max<size_t>(span.bytes, 1));
  const size_t sets = std::clamp<size_t>(2 * cache / std::max<size_t>(bytes, 1), 1, kMostSets);
  const backend::BufferPtr room = device.allocate(std::max<size_t>(bytes, 1) * sets);
  size_t at = 0;
  for (size_t s = 0; s < sets; ++s) {
    std::vector<backend::BufferSpan>& spans = spans_.emplace_back();
    for (const backend::BufferSpan& from : home_) {
      spans.push_back({room, at, from.bytes});
      at += round_up(std::max<size_t>(from.bytes, 1));
      if (from.bytes) stream.copy(spans.back(), from);
    }
    std::vector<backend::RecordedLaunch> own = launches;
    for (backend::RecordedLaunch& launch : own) launch.buffers = spans;
    replays_.push_back(stream.record(std::move(own)));
  }
}

Timed Rotation::timed() {
  const size_t half = flush_->bytes() / 2 / backend::kAlignment * backend::kAlignment;
  return {[this] {
            last_ = next_;
            stream_.replay(*replays_[next_]);
            next_ = (next_ + 1) % replays_.size();
          },
          [this, half] {
            stream_.copy({flush_, 0, half}, {flush_, half, half});
          },
          sets()};
}

void Rotation::bring_back() {
  for (size_t a = 0; a < home_.size(); ++a)
    if (home_[a].bytes) stream_.copy(home_[a], spans_[last_][a]);
}

}  // namespace thrice::measure
