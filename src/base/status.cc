#include <thrice/status.h>

namespace thrice {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "Ok";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kInvalidModel:
      return "InvalidModel";
    case Code::kUnsupported:
      return "Unsupported";
    case Code::kNotFound:
      return "NotFound";
    case Code::kIo:
      return "Io";
    case Code::kCorrupt:
      return "Corrupt";
    case Code::kOutOfMemory:
      return "OutOfMemory";
    case Code::kCompileFailed:
      return "CompileFailed";
    case Code::kLaunchFailed:
      return "LaunchFailed";
    case Code::kTimedOut:
      return "TimedOut";
    case Code::kWrongResult:
      return "WrongResult";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kInternal:
      return "Internal";
  }
  return "Unknown";
}

}  // namespace thrice
