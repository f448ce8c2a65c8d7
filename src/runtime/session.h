// Release -> answers, in this process: load, run. Links no optimizer and no compiler of ours.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "release/release.h"

namespace thrice::runtime {

// One loaded release on one device, with one stream. One thread at a time; make one session a thread
// (programs and weights are shared through `code()`).
class Session {
 public:
  // `programs` says where programs come from (runtime/programs.h for releases; tests give others).
  Session(backend::DevicePtr device, std::shared_ptr<const release::Release> release,
          const exec::ProgramSource& programs);

  // Inputs in the order of the manifest. Errors: kInvalidArgument naming the input, what it is and what it
  // must be.
  std::vector<ir::Tensor> run(const std::vector<ir::Tensor>& inputs, const exec::RunOptions& options = {});
  // By name; missing and unknown names are errors that list the names there are.
  std::vector<ir::Tensor> run(const std::map<std::string, ir::Tensor>& inputs,
                              const exec::RunOptions& options = {});

  const release::Release& release() const { return *release_; }
  exec::Executor& executor() { return *executor_; }
  std::shared_ptr<const exec::Executable> code() const { return code_; }

 private:
  std::shared_ptr<const release::Release> release_;
  std::shared_ptr<const exec::Executable> code_;
  std::unique_ptr<exec::Executor> executor_;
};

}  // namespace thrice::runtime
