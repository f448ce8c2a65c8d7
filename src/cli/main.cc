// The `thrice` executable: the table of commands, and the one place where errors become exit codes.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "cli/commands.h"
#include "cli/exit_code.h"

int main(int argc, char** argv) {
  using namespace thrice;
  // CUDA numbers cards by speed unless told; NVML, nvidia-smi and people number them by the bus.
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  try {
    return cli::run_command_line(argc, argv, cli::commands());
  } catch (const Error& e) {
    fmt::print(stderr, "thrice: {} [{}]\n", e.what(), code_name(e.code()));
    return cli::exit_code(e.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "thrice: out of host memory [OutOfMemory]\n");
    return cli::exit_code(Code::kOutOfMemory);
  } catch (const std::filesystem::filesystem_error& e) {
    fmt::print(stderr, "thrice: {} [Io]\n", e.what());
    return cli::exit_code(Code::kIo);
  } catch (const std::exception& e) {
    fmt::print(stderr, "thrice: {} [Internal]; please report this with the command line\n", e.what());
    return cli::exit_code(Code::kInternal);
  }
}
