// Catches: target texts read wrongly, and a device key that ignores a limit or heeds a peak.
#include "target/device_spec.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <functional>

namespace thrice::target {
namespace {

TEST(Target, Forms) {
  EXPECT_EQ(Target::parse("opencl:1").api, Api::kOpenCL);
  EXPECT_EQ(Target::parse("opencl:1").index, 1);
  EXPECT_EQ(Target::parse("cuda").index, 0);
  const Target cross = Target::parse("cuda:sm_80,sm_90a,sm_80");
  EXPECT_EQ(cross.index, -1);
  EXPECT_EQ(cross.architectures, (std::vector<std::string>{"sm_80", "sm_90a"}));
  for (const char* text : {"", "metal:0", "cuda:", "cuda:-1", "cuda:sm_", "cuda:sm_80,", "cuda:sm_9x",
                           "opencl:sm_80", "cuda:99999", "cuda:0:1"})
    EXPECT_THROW(Target::parse(text), Error) << text;
}

TEST(DeviceSpec, KeyHeedsWhatChangesResults) {
  const DeviceSpec base;
  const auto key = [](const std::function<void(DeviceSpec&)>& change) {
    DeviceSpec d;
    change(d);
    return d.key();
  };
  EXPECT_EQ(base.key().size(), 32u);
  EXPECT_NE(base.key(), key([](DeviceSpec& d) { d.driver = "2"; }));
  EXPECT_NE(base.key(), key([](DeviceSpec& d) { d.name = "x"; }));
  EXPECT_NE(base.key(), key([](DeviceSpec& d) { d.max_shared_bytes = 1; }));
  EXPECT_NE(base.key(), key([](DeviceSpec& d) { d.has_f64 = true; }));
  EXPECT_NE(base.key(), key([](DeviceSpec& d) { d.cublaslt = "13.1.0"; }));
  EXPECT_NE(base.key(), key([](DeviceSpec& d) { d.cudnn = "13.1.0"; }));
  EXPECT_NE(key([](DeviceSpec& d) { d.name = "ab"; }), key([](DeviceSpec& d) {
              d.name = "a";
              d.driver = "b";
            }));
  EXPECT_EQ(base.key(), key([](DeviceSpec& d) { d.f32_gflops = 5; }));
  EXPECT_EQ(base.key(), key([](DeviceSpec& d) { d.id = "null:7"; }));
}

}  // namespace
}  // namespace thrice::target
