// Messages for people, on stderr. Results go to stdout by the command line, never through here.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

namespace thrice {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

// Default: kWarning. Set once by flow/settings (THRICE_LOG); safe from many threads.
void set_log_level(LogLevel level);
LogLevel log_level();
LogLevel parse_log_level(std::string_view name);  // "error" "warning" "info" "debug"; throws kInvalidArgument

// Where messages go instead of stderr: the progress line, and tests. An empty function restores stderr.
// Called under a lock, so lines of several threads do not mix.
using LogSink = std::function<void(LogLevel level, const std::string& message)>;
void set_log_sink(LogSink sink);

void log_message(LogLevel level, const std::string& message);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) log_message(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace thrice
