// thrice worker: the process that trials run in; started by optimize.
#include "cli/commands.h"
#include "worker/serve.h"

namespace thrice::cli {

namespace {

int run(const Arguments& arguments) {
  worker::ServeOptions options;
  options.device = arguments.get("--device", "");
  options.architecture = arguments.get("--architecture", "");
  options.kernels = arguments.get("--kernels", "");
  options.fences = arguments.has("--fences");
  return worker::serve(options);
}

}  // namespace

Command worker_command() {
  Command command{"worker",
                  "trials of optimize in a process of their own (started by it)",
                  "",
                  {},
                  {{"--device", "ID", "runs trials on it"},
                   {"--architecture", "NAME", "builds for it, without a device"},
                   {"--kernels", "FOLDER", "kernel cache"},
                   {"--fences", "", "checks with buffers that end at unmapped memory"}},
                  run};
  command.hidden = true;
  return command;
}

}  // namespace thrice::cli
