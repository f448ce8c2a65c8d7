#include "artifact/measurement.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::artifact {
namespace {
constexpr const char* kNames[] = {"ok",        "illegal", "compile_failed", "launch_failed",
                                  "timed_out", "wrong",   "out_of_memory"};
}

const char* outcome_name(Outcome outcome) { return kNames[static_cast<size_t>(outcome)]; }

Outcome parse_outcome(const std::string& name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<Outcome>(i);
  throw Error(Code::kCorrupt, fmt::format("'{}' is no outcome of a trial", name));
}

}  // namespace thrice::artifact
