// Every command of the executable, one file each.
#pragma once
#include <vector>

#include "cli/arguments.h"

namespace thrice::cli {

Command agent_command();
Command bench_command();
Command cache_command();
Command devices_command();
Command doctor_command();
Command explain_command();
Command inspect_command();
Command library_command();
Command optimize_command();
Command run_command();
Command strip_command();
Command worker_command();

std::vector<Command> commands();  // in the order of `thrice --help`

}  // namespace thrice::cli
