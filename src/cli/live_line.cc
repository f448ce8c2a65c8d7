#include "cli/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

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
std::string json_of(const flow::Progress& p) {
  nlohmann::json j = {{"phase", p.phase}, {"done", p.done}};
  if (!p.region.empty()) j["region"] = p.region;
  if (p.total > 0) j["total"] = p.total;
  if (p.speedup > 0) j["speedup"] = p.speedup;
  if (p.seconds_left >= 0) j["seconds_left"] = p.seconds_left;
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
}  // namespace

LiveLine::LiveLine(Form form) : form_(form), is_terminal_(isatty(STDERR_FILENO) != 0) {
  interrupts = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}
LiveLine::~LiveLine() {
  if (form_ == Form::kLine && is_terminal_) fmt::print(stderr, "\r\033[K");
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

flow::Listener LiveLine::listener() {
  return {[this](const flow::Progress& p) { show(p); }, [] { return interrupts.load() > 0; }};
}

void LiveLine::show(const flow::Progress& p) {
  if (form_ == Form::kNone) return;
  const bool is_new = p.phase != last_phase_;
  const double now = monotonic_us();
  if (!is_new && ((form_ == Form::kLine && !is_terminal_) || now - last_us_ < 1e5)) return;
  last_us_ = now;
  last_phase_ = p.phase;
  if (form_ == Form::kJson) {
    fmt::print(stderr, "{}\n", json_of(p));
    std::fflush(stderr);
    return;
  }
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
