// The scripted driver (tests/fake_cuda/) in a test's process. It is opened by its path before anything asks
// for "libcuda.so.1", which the loader then finds to be open already; so a card of the machine is never used
// here.
#pragma once
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "backend/backend.h"
#include "fake_cuda/fake_cuda.h"

namespace thrice::test {

class FakeCuda {
 public:
  static const FakeCuda& open() {
    static const FakeCuda one;
    return one;
  }
  decltype(&fake_cuda_script) script;
  decltype(&fake_cuda_calls) calls;
  decltype(&fake_cuda_live) live;
  decltype(&fake_cuda_on_kernel) on_kernel;

  // What the driver was asked to allocate and to make; a warm run makes nothing.
  long long made() const {
    long long count = 0;
    for (const char* f :
         {"MemAlloc_v2", "StreamCreate", "EventCreate", "GraphCreate", "GraphInstantiateWithFlags",
          "ModuleLoadData", "DevicePrimaryCtxRetain", "StreamBeginCapture_v2"})
      count += calls(f);
    return count;
  }
  long long waits() const {
    return calls("StreamSynchronize") + calls("EventSynchronize") + calls("MemFree_v2");
  }
  // Objects that live: "" or "3 buffers 1 streams".
  std::string left() const {
    std::string text;
    for (const char* kind :
         {"contexts", "modules", "streams", "events", "graphs", "execs", "buffers", "bytes"})
      if (const long long n = live(kind)) text += std::to_string(n) + " " + kind + " ";
    return text;
  }

  // A stream of a caller's, in card 0's context.
  void* make_stream() const {
    void *context = nullptr, *stream = nullptr;
    retain_(&context, 0);
    push_(context);
    create_(&stream, 0);
    pop_(&context);
    return stream;
  }
  void destroy_stream(void* stream) const {
    destroy_(stream);
    release_(0);
  }

 private:
  int (*retain_)(void**, int);
  int (*release_)(int);
  int (*push_)(void*);
  int (*pop_)(void**);
  int (*create_)(void**, unsigned);
  int (*destroy_)(void*);

  FakeCuda() {
    const std::string folder = THRICE_FAKE_CUDA;
    ::setenv("THRICE_NVRTC", (folder + "/libnvrtc.so.12").c_str(), 1);
    ::setenv("THRICE_CUBLASLT", "off", 1);
    ::setenv("THRICE_CUDNN", "off", 1);
    void* library = ::dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      ADD_FAILURE() << ::dlerror();
      std::abort();
    }
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    };
    find("fake_cuda_script", script);
    find("fake_cuda_calls", calls);
    find("fake_cuda_live", live);
    find("fake_cuda_on_kernel", on_kernel);
    find("cuDevicePrimaryCtxRetain", retain_);
    find("cuDevicePrimaryCtxRelease_v2", release_);
    find("cuCtxPushCurrent_v2", push_);
    find("cuCtxPopCurrent_v2", pop_);
    find("cuStreamCreate", create_);
    find("cuStreamDestroy_v2", destroy_);
  }
};

class WithFakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    fake.script("");
    fake.on_kernel(nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(fake.left(), "") << "something was not given back to the driver";
    fake.on_kernel(nullptr);
  }
  const FakeCuda& fake = FakeCuda::open();
};

}  // namespace thrice::test
