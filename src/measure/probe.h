// What the device can do at best, measured: the floors of rooflines where no datasheet is at hand.
#pragma once
#include "backend/backend.h"
#include "jit/kernel_cache.h"

namespace thrice::measure {

// The device's spec with bandwidth_gbs (a copy kernel over 64 MiB, bytes read plus bytes written) and
// f32_gflops (independent multiply-adds in registers) filled by measurement where they are unknown;
// peaks_source says so. Takes about half a second. The null device's spec comes back unchanged. A probe is a
// lower bound of the true peak: a share of it above 1 means that the probe, not the kernel, fell short.
target::DeviceSpec probe_peaks(backend::Device& device, jit::KernelCache& cache);

}  // namespace thrice::measure
