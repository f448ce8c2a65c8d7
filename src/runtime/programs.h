// Where the programs of a loaded release come from.
#pragma once
#include <functional>
#include <memory>

#include "exec/executable.h"
#include "release/release.h"

namespace thrice::runtime {

// Builds kernel text that the release holds no fitting binary of. Empty: such a release is refused.
using Builder = std::function<backend::ProgramPtr(const artifact::KernelSource&)>;

// By the device's own compiler (an OpenCL driver, NVRTC where it is installed), each text once. Nothing is
// kept on disk.
Builder driver_builder(backend::DevicePtr device);

// The binary of the device's architecture or, on a CUDA card, of one whose code it runs too (sm_80 on sm_86);
// else the text where it is in the device's language and `build` is not empty. The source throws
// kUnsupported, which lists the architectures inside, and kCorrupt where the release has no program for a
// region.
exec::ProgramSource release_programs(backend::DevicePtr device,
                                     std::shared_ptr<const release::Release> release, Builder build);

}  // namespace thrice::runtime
