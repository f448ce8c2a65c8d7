#include "worker/builders.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "jit/cache_entry.h"

namespace thrice::worker {

Builders::Builders(std::string executable, std::string architecture, std::string compiler, int count,
                   const Limits& limits)
    : executable_(std::move(executable)),
      architecture_(std::move(architecture)),
      compiler_(std::move(compiler)),
      count_(count > 0 ? count : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      limits_(limits) {}
Builders::~Builders() = default;

// Does not wait for it: sixteen starts one after another would take seconds.
bool Builders::start(Seat& seat) {
  seat.ready = false;
  try {
    seat.child = std::make_unique<Child>(
        executable_, std::vector<std::string>{"worker", "--architecture", architecture_}, 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Neither done nor under way, each once.
std::deque<artifact::KernelSource> Builders::new_ones(
    const std::vector<artifact::KernelSource>& sources) const {
  std::deque<artifact::KernelSource> list;
  for (const artifact::KernelSource& source : sources) {
    const auto same = [&](const auto& other) { return other.key == source.key; };
    if (!done_.count(source.key) && std::none_of(list.begin(), list.end(), same) &&
        std::none_of(seats_.begin(), seats_.end(), same))
      list.push_back(source);
  }
  return list;
}

void Builders::submit(const std::vector<artifact::KernelSource>& coming) {
  if (broken_) return;
  const std::deque<artifact::KernelSource> list = new_ones(coming);
  for (const artifact::KernelSource& source : list)
    std::erase_if(waiting_, [&](const artifact::KernelSource& other) { return other.key == source.key; });
  waiting_.insert(waiting_.begin(), list.begin(), list.end());
  pump(0);
}

void Builders::submit_last(const std::vector<artifact::KernelSource>& later) {
  if (broken_) return;
  for (const artifact::KernelSource& source : new_ones(later))
    if (std::none_of(waiting_.begin(), waiting_.end(),
                     [&](const artifact::KernelSource& other) { return other.key == source.key; }))
      waiting_.push_back(source);
  pump(0);
}

void Builders::finish_all() {
  const auto is_building = [](const Seat& seat) { return !seat.key.empty(); };
  while (!broken_ && (!waiting_.empty() || std::any_of(seats_.begin(), seats_.end(), is_building)))
    pump(monotonic_us() + limits_.build_s * 1e6);
}

void Builders::finish(Seat& seat, BuiltElsewhere built) {
  built.ms = (monotonic_us() - seat.begun_us) * 1e-3;
  done_[seat.key] = std::move(built);
  seat.key.clear();
}

void Builders::collect(Seat& seat) {
  constexpr double kRestOfMessage_us = 5e6;
  Message answer;
  BuiltElsewhere built;
  const Channel::Got got = seat.child->channel().receive(answer, monotonic_us() + kRestOfMessage_us);
  if (!seat.ready) {
    seat.ready =
        got == Channel::Got::kMessage && answer.kind == Kind::kHello && read_text(answer.body) == compiler_;
    seat.begun_us = monotonic_us();
    if (seat.ready) return;
    broken_ = true;  // no compiler, or another one: what is asked for is built where it runs
    seat.child.reset();
    seat.key.clear();
    return;
  }
  if (got != Channel::Got::kMessage) {
    built.code = Code::kCompileFailed;
    built.message = "quarantined: the compiler ended its process: " + seat.child->end(2);
    seat.child.reset();
  } else if (answer.kind == Kind::kFailed) {
    const Error error = read_error(answer.body);
    built.code = error.code();
    built.message = error.what();
  } else {
    built.binary = jit::read_entry(answer.body);
    if (!built.binary) {
      built.code = Code::kCompileFailed;
      built.message = "a builder answered with something that is no kernel";
    }
  }
  finish(seat, std::move(built));
}

void Builders::pump(double deadline_us) {
  for (;;) {
    while (!waiting_.empty() && !broken_) {
      auto idle = std::find_if(seats_.begin(), seats_.end(), [](const Seat& s) { return s.key.empty(); });
      if (idle == seats_.end()) {
        if (static_cast<int>(seats_.size()) >= count_) break;
        seats_.emplace_back();
        idle = seats_.end() - 1;
      }
      if (!idle->child && !start(*idle)) {
        broken_ = true;
        break;
      }
      idle->begun_us = monotonic_us();
      if (!idle->child->channel().send(Kind::kBuild, write_source(waiting_.front()),
                                       monotonic_us() + limits_.start_s * 1e6)) {
        idle->child.reset();
        continue;
      }
      idle->key = waiting_.front().key;
      waiting_.pop_front();
    }
    std::vector<pollfd> entries;
    std::vector<size_t> places;
    double first_late_us = deadline_us;
    for (size_t i = 0; i < seats_.size(); ++i)
      if (!seats_[i].key.empty()) {
        entries.push_back({seats_[i].child->channel().descriptor(), POLLIN, 0});
        places.push_back(i);
        first_late_us = std::min(first_late_us, seats_[i].begun_us + limit_s(seats_[i]) * 1e6);
      }
    if (entries.empty()) return;
    const double left_ms = std::clamp((first_late_us - monotonic_us()) * 1e-3, 0.0, 1e6);
    const int ready =
        ::poll(entries.data(), entries.size(), static_cast<int>(left_ms) + (left_ms > 0 ? 1 : 0));
    for (size_t e = 0; e < entries.size() && ready > 0; ++e)
      if (entries[e].revents) collect(seats_[places[e]]);
    bool late = false;
    for (Seat& seat : seats_)
      if (!seat.key.empty() && monotonic_us() - seat.begun_us > limit_s(seat) * 1e6) {
        seat.child.reset();
        finish(seat, {{},
                      Code::kTimedOut,
                      fmt::format("quarantined: killed after {:.3g} s while building", limits_.build_s)});
        late = true;
      }
    if (ready > 0 || late) {
      if (waiting_.empty() || deadline_us > 0) return;
      continue;  // somebody is idle now
    }
    if (monotonic_us() >= deadline_us) return;
  }
}

std::optional<BuiltElsewhere> Builders::take(const std::string& key) {
  std::erase_if(waiting_, [&](const artifact::KernelSource& s) { return s.key == key; });
  pump(0);
  for (;;) {
    const auto done = done_.find(key);
    if (done != done_.end()) {
      BuiltElsewhere built = std::move(done->second);
      done_.erase(done);
      return built;
    }
    const bool building =
        std::any_of(seats_.begin(), seats_.end(), [&](const Seat& s) { return s.key == key; });
    if (!building) return {};
    pump(monotonic_us() + limits_.build_s * 1e6);
  }
}

}  // namespace thrice::worker
