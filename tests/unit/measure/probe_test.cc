// Would catch: a probe whose kernels do not build or do nothing, peaks that are zero or infinite, a datasheet
// overwritten by a measurement.
#include "measure/probe.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>

namespace thrice::measure {
namespace {

TEST(Probe, FillsInWhatIsUnknown) {
  backend::DevicePtr device;
  try {
    device = backend::open_device("opencl:0");
  } catch (const Error& e) {
    GTEST_SKIP() << "skipped: no OpenCL device: " << e.what();
  }
  if (device->spec().bandwidth_gbs > 0) GTEST_SKIP() << "skipped: the device has a datasheet";
  jit::KernelCache cache(device, "");
  const target::DeviceSpec spec = probe_peaks(*device, cache);
  EXPECT_EQ(spec.peaks_source, "probe");
  EXPECT_TRUE(spec.bandwidth_gbs > 0.1 && spec.bandwidth_gbs < 1e6) << spec.bandwidth_gbs;
  EXPECT_TRUE(spec.f32_gflops > 0.1 && spec.f32_gflops < 1e7) << spec.f32_gflops;
}

TEST(Probe, NullDeviceStaysAsItIs) {
  const backend::DevicePtr device = backend::open_device("null:0");
  jit::KernelCache cache(device, "");
  const target::DeviceSpec spec = probe_peaks(*device, cache);
  EXPECT_EQ(spec.bandwidth_gbs, device->spec().bandwidth_gbs);
  EXPECT_EQ(spec.peaks_source, device->spec().peaks_source);
}

}  // namespace
}  // namespace thrice::measure
