#include "worker/ahead.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/clock.h"

namespace thrice::worker {
namespace {

constexpr size_t kMostWaiting = 64, kRemembered = 256;
// Of processor time: a kernel that hangs takes cores from the trial beside it, one that waits for a core does
// not.
constexpr double kPatience_s = 5;

double processor_seconds(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stat, text);
  const size_t name_ends = text.rfind(')');
  if (name_ends == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_ends + 1));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;  // as proc(5) numbers them
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

Ahead::Ahead(std::string executable, std::vector<std::string> words, int64_t memory_bytes, int count,
             const Limits& limits)
    : executable_(std::move(executable)),
      words_(std::move(words)),
      memory_bytes_(memory_bytes),
      limits_(limits),
      seats_(static_cast<size_t>(count)) {
  for (Seat& seat : seats_) threads_.emplace_back([this, &seat] { loop(seat); });
}

Ahead::~Ahead() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    for (const Seat& seat : seats_)
      if (seat.pid > 1) ::kill(seat.pid, SIGKILL);  // a compilation need not be waited for
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Ahead::submit(const ir::Workload& workload, const std::vector<ir::Fact>& facts,
                   const std::vector<measure::Contender>& coming) {
  measure::TimingOptions once;  // a launch that is not timed, and the fewest samples of one execution
  once.min_batch_us = 0;
  once.min_samples = 1;
  once.max_total_us = 0;
  const std::string key = workload_key(workload, facts);
  std::deque<Coming> list;
  for (const measure::Contender& contender : coming)
    list.push_back(
        {contender.source.key, key, write_workload(workload, facts), write_compare(key, {contender}, once)});
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase_if(list, [&](const Coming& c) {
      return is_under_way(c.key) || std::find(done_.begin(), done_.end(), c.key) != done_.end();
    });
    for (const Coming& before : waiting_)
      if (list.size() < kMostWaiting &&
          std::none_of(list.begin(), list.end(), [&](const Coming& c) { return c.key == before.key; }))
        list.push_back(before);
    waiting_ = std::move(list);
  }
  changed_.notify_all();
}

void Ahead::wait_for(const std::string& key) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::erase_if(waiting_, [&](const Coming& c) { return c.key == key; });
  changed_.wait(lock, [&] { return !is_under_way(key); });
}

bool Ahead::is_under_way(const std::string& key) const {
  return std::any_of(seats_.begin(), seats_.end(), [&](const Seat& seat) { return seat.key == key; });
}

int64_t Ahead::built() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return built_;
}

void Ahead::halt(bool still) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    halted_ = still;
    for (const Seat& seat : seats_)
      if (seat.pid > 1) ::kill(seat.pid, still ? SIGSTOP : SIGCONT);
  }
  if (!still) changed_.notify_all();
}

bool Ahead::serve(Child& child, const Coming& coming) const {
  constexpr double kLook_us = 100e3;
  const double deadline = monotonic_us() + limits_.build_s * 1e6, spent = processor_seconds(child.pid());
  bool is_good = child.channel().send(Kind::kCompare, coming.request, deadline);
  Message answer;
  while (is_good) {
    const Channel::Got got = child.channel().receive(answer, monotonic_us() + kLook_us);
    if (got == Channel::Got::kEnd) return false;
    if (got == Channel::Got::kTimeout) {
      is_good = monotonic_us() < deadline && processor_seconds(child.pid()) - spent < kPatience_s;
      continue;
    }
    if (answer.kind == Kind::kUnknownWorkload)
      is_good = child.channel().send(Kind::kWorkload, coming.workload, deadline) &&
                child.channel().send(Kind::kCompare, coming.request, deadline);
    else if (answer.kind == Kind::kEntered && read_phase(answer.body) == measure::Phase::kTiming)
      is_good = child.channel().send(Kind::kGo, {}, deadline);
    else if (answer.kind != Kind::kEntered)
      return true;  // timings, or why there are none
  }
  return false;
}

void Ahead::loop(Seat& seat) {
  constexpr int kMostDeaths = 20;  // of its process: then every trial is built where it runs
  std::unique_ptr<Child> child;
  const auto replace = [&](std::unique_ptr<Child> next) {
    const std::lock_guard<std::mutex> lock(mutex_);
    child = std::move(next);  // the old one is gone before its number may be another's
    seat.pid = child ? child->pid() : -1;
    if (child && halted_) ::kill(seat.pid, SIGSTOP);
    if (child && stopping_) ::kill(seat.pid, SIGKILL);  // the destructor did not see it
  };
  int deaths = 0;
  for (;;) {
    Coming coming;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || (!waiting_.empty() && !halted_); });
      if (stopping_) break;
      coming = std::move(waiting_.front());
      waiting_.pop_front();
      seat.key = coming.key;
    }
    bool is_built = false;
    if (deaths < kMostDeaths) try {
        if (!child) {
          replace(std::make_unique<Child>(executable_, words_, memory_bytes_));
          Message hello;
          if (child->channel().receive(hello, monotonic_us() + limits_.start_s * 1e6) !=
                  Channel::Got::kMessage ||
              hello.kind != Kind::kHello)
            deaths = kMostDeaths;
        }
        is_built = deaths < kMostDeaths && serve(*child, coming);
      } catch (const Error&) {
        // no process, or a damaged message: as if it had died
      }
    if (!is_built) {
      ++deaths;
      replace(nullptr);
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      seat.key.clear();
      if (is_built) ++built_;
      done_.push_back(coming.key);
      if (done_.size() > kRemembered) done_.erase(done_.begin());
    }
    changed_.notify_all();
  }
  replace(nullptr);
}

}  // namespace thrice::worker
