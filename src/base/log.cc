#include "base/log.h"

#include <thrice/status.h>

#include <atomic>
#include <cstdio>
#include <mutex>

namespace thrice {
namespace {

constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
std::atomic<LogLevel> current{LogLevel::kWarning};

struct Output {
  std::mutex mutex;
  LogSink sink;
};
Output& output() {
  static Output instance;
  return instance;
}

}  // namespace

void set_log_level(LogLevel level) { current = level; }
LogLevel log_level() { return current; }

LogLevel parse_log_level(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<LogLevel>(i);
  throw Error(Code::kInvalidArgument,
              fmt::format("'{}' is no log level; expected error, warning, info or debug", name));
}

void set_log_sink(LogSink sink) {
  const std::lock_guard lock(output().mutex);
  output().sink = std::move(sink);
}

void log_message(LogLevel level, const std::string& message) {
  const std::lock_guard lock(output().mutex);
  if (output().sink) return output().sink(level, message);
  std::fprintf(stderr, "thrice: %s: %s\n", kNames[static_cast<size_t>(level)], message.c_str());
}

}  // namespace thrice
