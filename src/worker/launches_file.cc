#include "worker/launches_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/backend.h"
#include "base/fields.h"
#include "base/file.h"
#include "measure/arguments.h"
#include "worker/message.h"

namespace thrice::worker {
namespace {

// Halves the longest axis until few enough are left.
void shorten(artifact::Launch& launch, int64_t most_groups) {
  auto& grid = launch.grid;
  while (most_groups > 0 && grid[0] * grid[1] * grid[2] > most_groups) {
    int64_t& longest = *std::max_element(grid.begin(), grid.end());
    longest = (longest + 1) / 2;
  }
}

}  // namespace

void write_launches(const std::string& path, const std::vector<ToLaunch>& all) {
  FieldWriter out;
  out.integer(static_cast<int64_t>(all.size()));
  for (const ToLaunch& one : all) {
    out.block(write_workload(*one.workload, *one.facts));
    out.block(write_run("", one.job));
  }
  write_file_atomic(path, out.bytes);
}

void make_launches(const std::string& path, const LaunchOptions& options) {
  const auto bytes_of = [](std::span<const std::byte> block) {
    return std::vector<std::byte>(block.begin(), block.end());
  };
  const std::vector<std::byte> bytes = read_file(path);
  FieldReader in(bytes);
  const backend::DevicePtr device = backend::open_device(options.device);
  jit::KernelCache cache(device, options.kernels);
  const auto stream = device->make_stream();
  for (int64_t n = in.integer(); in.good && n > 0; --n) {
    const Known known = read_workload(bytes_of(in.block()));
    RunRequest request = read_run(bytes_of(in.block()));
    for (artifact::Launch& launch : request.job.launches.launches) shorten(launch, options.most_groups);
    measure::Oracle oracle(known.workload, known.facts);
    const auto built = cache.build(request.job.source);
    measure::Arguments arguments(*device, *stream, built.program, known.workload, request.job.launches,
                                 oracle.facts());
    arguments.prepare(oracle.inputs(ir::InputKind::kNormal, request.job.options.seed), measure::fill_of(0));
    for (const backend::RecordedLaunch& launch : arguments.launches()) stream->launch(launch);
    stream->synchronize();
  }
  if (!in.complete()) throw Error(Code::kCorrupt, path + ": no file of launches");
  fmt::print("{}\n", device->spec().name);
}

}  // namespace thrice::worker
