// Device memory of a release, told without its device.
#pragma once
#include <memory>
#include <string>

#include "cli/arguments.h"
#include "exec/predict.h"
#include "release/release.h"

namespace thrice::cli {

struct ReleaseMemory {
  std::string extents;  // "batch=1 width=320"
  std::shared_ptr<const exec::Executable> code;
  exec::PredictedMemory memory;
};

// At the extents of --dims (symbols that it leaves out take the usual guesses); without it at those that the
// release was timed at. Errors: kInvalidArgument (--dims), kCorrupt where the plan does not fit the graph.
ReleaseMemory release_memory(const release::Release& release, const Arguments& arguments);

}  // namespace thrice::cli
