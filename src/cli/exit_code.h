// Exit codes of the command line, one a status code (docs/exit_codes.md).
#pragma once
#include <thrice/status.h>

namespace thrice::cli {

inline constexpr int kExitUsage = 2;

inline int exit_code(Code code) {
  switch (code) {
    case Code::kOk:
      return 0;
    case Code::kInvalidArgument:
      return kExitUsage;
    case Code::kInvalidModel:
      return 3;
    case Code::kUnsupported:
      return 4;
    case Code::kNotFound:
      return 5;
    case Code::kIo:
      return 6;
    case Code::kCorrupt:
      return 7;
    case Code::kOutOfMemory:
      return 8;
    case Code::kCompileFailed:
      return 9;
    case Code::kLaunchFailed:
      return 10;
    case Code::kTimedOut:
      return 11;
    case Code::kWrongResult:
      return 12;
    case Code::kInternal:
      return 70;
    case Code::kCancelled:
      return 130;  // as shells report SIGINT
  }
  return 70;
}

}  // namespace thrice::cli
