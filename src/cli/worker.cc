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
  options.launches = arguments.get("--launches", "");
  options.groups = arguments.integer("--groups", 0);
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
                   {"--fences", "", "checks with buffers that end at unmapped memory"},
                   {"--launches", "FILE", "makes its launches once and ends (for race checkers)"},
                   {"--groups", "N", "of such a launch, at most"}},
                  run};
  command.hidden = true;
  return command;
}

}  // namespace thrice::cli
