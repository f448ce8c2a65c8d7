#include "cli/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "base/clock.h"

namespace thrice::cli {

namespace {
std::atomic<int> interrupts{0};
void on_signal(int signal) {
  if (interrupts.fetch_add(1) > 0) _exit(128 + signal);
}
std::string minutes(double seconds) {
  return fmt::format("{}:{:02d}", static_cast<int>(seconds) / 60, static_cast<int>(seconds) % 60);
}
}  // namespace

LiveLine::LiveLine(bool quiet) : quiet_(quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {
  interrupts = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}
LiveLine::~LiveLine() {
  if (!quiet_ && is_terminal_) fmt::print(stderr, "\r\033[K");
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

flow::Listener LiveLine::listener() {
  return {[this](const flow::Progress& p) { show(p); }, [] { return interrupts.load() > 0; }};
}

void LiveLine::show(const flow::Progress& p) {
  if (quiet_) return;
  const bool is_new = p.phase != last_phase_;
  const double now = monotonic_us();
  if (!is_new && (!is_terminal_ || now - last_us_ < 1e5)) return;
  last_us_ = now;
  last_phase_ = p.phase;
  std::string line = p.phase;
  if (p.total > 0) line += fmt::format("  {}/{}", p.done, p.total);
  if (p.speedup > 0) line += fmt::format("  best {:.2f}x", p.speedup);
  if (p.seconds_left >= 0) line += fmt::format("  {} left", minutes(p.seconds_left));
  if (!p.region.empty()) line += "  " + p.region;
  if (line.size() > 110) line = line.substr(0, 107) + "...";
  if (is_terminal_)
    fmt::print(stderr, "\r\033[K{}", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

}  // namespace thrice::cli
