#include "cli/commands.h"

namespace thrice::cli {

std::vector<Command> commands() {
  return {devices_command(), inspect_command(), optimize_command(), explain_command(),
          run_command(),     bench_command(),   strip_command(),    cache_command(),
          agent_command(),   library_command(), doctor_command(),   worker_command()};
}

}  // namespace thrice::cli
