// On the scripted driver. Would catch: the wrong card opened, a slice taken for a card, an error that hides
// how much memory was wanted or that the card is lost, objects of the driver that leak, a graph that forgets
// an exchanged buffer.
#include <thrice/status.h>

#include <numeric>

#include "fake_driver.h"

namespace thrice::backend {
namespace {

constexpr const char* kTwoCards =
    "cards 3\nname NVIDIA H200\nuuid 5e1f0a7c-0000-0000-0000-000000000001\n"
    "card 1\nname NVIDIA A100\nuuid 77777777-0000-0000-0000-000000000002\nsm 8 0\nunits 108\nmemory "
    "5000000000\n"
    "card 2\nname NVIDIA H200 MIG 1g.18gb\nuuid abcdef01-2345-6789-abcd-ef0123456789\nunits 16\n";

std::string error_of(const std::function<void()>& f, Code code) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  return "no error";
}

artifact::KernelBinary built(Device& device,
                             const std::string& text = " add(const float* a, float* y, const int* E)") {
  artifact::KernelSource s;
  s.language = artifact::Language::kCuda;
  s.text = text;
  s.kernels = {"add"};
  return device.compiler()->compile(s);
}

// y[i] = a[i] + E[1] for i < E[0].
void add(const char*, const unsigned long long* arguments, size_t count) {
  ASSERT_EQ(count, 3u);
  const auto* a = reinterpret_cast<const float*>(arguments[0]);
  auto* y = reinterpret_cast<float*>(arguments[1]);
  const auto* e = reinterpret_cast<const int32_t*>(arguments[2]);
  for (int i = 0; i < e[0]; ++i) y[i] = a[i] + static_cast<float>(e[1]);
}

class CudaOnFake : public test::WithFakeCuda {
 protected:
  struct Opened {
    DevicePtr device;
    std::unique_ptr<Stream> stream;
    ProgramPtr program;
    explicit Opened(const std::string& id = "cuda:0")
        : device(open_device(id)), stream(device->make_stream()) {
      program = device->load(built(*device), {"add"});
    }
    BufferSpan floats(size_t n) {
      BufferSpan span{device->allocate(n * 4), 0, n * 4};
      std::vector<float> values(n);
      std::iota(values.begin(), values.end(), 0.f);
      stream->copy_to_device(span, std::as_bytes(std::span(values)));
      return span;
    }
    float last(const BufferSpan& span) {
      std::vector<float> values(span.bytes / 4);
      stream->copy_to_host(std::as_writable_bytes(std::span(values)), span);
      return values.back();
    }
    RecordedLaunch add(const BufferSpan& a, const BufferSpan& y, int shift) {
      const std::vector<int32_t> e{static_cast<int32_t>(a.bytes / 4), shift};
      RecordedLaunch l;
      l.program = program;
      l.launch.block = {32, 1, 1};
      l.buffers = {a, y};
      l.extents = {device->allocate(8), 0, 8};
      stream->copy_to_device(l.extents, std::as_bytes(std::span(e)));
      return l;
    }
  };
};

TEST_F(CudaOnFake, CardsAndSlicesByNumberAndUuid) {
  fake.script(kTwoCards);
  EXPECT_EQ(open_device("cuda:0")->spec().name, "NVIDIA H200");
  EXPECT_EQ(open_device("cuda:0")->spec().architecture, "sm_90a");
  EXPECT_EQ(open_device("cuda:1")->spec().architecture, "sm_80");
  EXPECT_EQ(open_device("cuda:GPU-7777")->spec().id, "cuda:1");
  const DevicePtr known = open_device("cuda:GPU-77777777-0000-0000-0000-000000000002");
  EXPECT_NEAR(known->spec().bandwidth_gbs, 3352, 1) << "2619 MHz, twice a clock, 5120 bits";
  EXPECT_NEAR(known->spec().f32_gflops,
              2e-3 * 1980 * 108 * (known->spec().architecture == "sm_80" ? 64 : 128), 1);
  EXPECT_EQ(open_device("cuda:GPU-77777777-0000-0000-0000-000000000002")->spec().compute_units, 108);
  const DevicePtr slice = open_device("cuda:MIG-abcdef01");
  EXPECT_EQ(slice->spec().id, "cuda:2");
  EXPECT_EQ(slice->spec().uuid, "MIG-abcdef01-2345-6789-abcd-ef0123456789");
  EXPECT_EQ(slice->spec().compute_units, 16);
  const std::string message = error_of([] { open_device("cuda:GPU-abcdef01"); }, Code::kNotFound);
  EXPECT_NE(message.find("cuda:1 (GPU-77777777-"), std::string::npos) << message;
  EXPECT_NE(message.find("cuda:2 (MIG-abcdef01-"), std::string::npos) << message;
  error_of([] { open_device("cuda:3"); }, Code::kNotFound);
}

TEST_F(CudaOnFake, MemoryOfTwoCardsIsKeptApart) {
  fake.script(kTwoCards);
  Opened first("cuda:0"), second("cuda:1");
  fake.on_kernel(add);
  const BufferSpan a = first.floats(8), b = second.floats(8);
  second.stream->launch(second.add(b, b, 5));
  EXPECT_EQ(second.last(b), 12);
  EXPECT_EQ(first.last(a), 7);
  EXPECT_LT(first.device->free_memory_bytes(), int64_t{1} << 30);
  // The driver refuses another card's memory.
  EXPECT_NE(
      error_of([&] { first.stream->fill(b, std::byte{0}); }, Code::kLaunchFailed).find("filling, 32 bytes"),
      std::string::npos);
}

TEST_F(CudaOnFake, ARunWaitsOnlyWhereItIsTold) {
  fake.on_kernel(add);
  Opened o;
  const BufferSpan a = o.floats(8), y = o.floats(8);
  const RecordedLaunch l = o.add(a, y, 3);
  const long long waits = fake.waits();
  o.stream->fill(y, std::byte{0});
  o.stream->launch(l);
  o.stream->copy(a, y);
  const auto event = o.stream->record_event();
  EXPECT_EQ(fake.waits(), waits);
  event->wait();
  EXPECT_EQ(fake.waits(), waits + 1);
  EXPECT_EQ(o.last(a), 10);
}

TEST_F(CudaOnFake, AGraphKeepsItsOrderAndTakesNewBuffers) {
  fake.on_kernel(add);
  Opened o;
  const BufferSpan a = o.floats(4), b = o.floats(4), c = o.floats(4), d = o.floats(4);
  auto replay = o.stream->record({o.add(a, b, 10), o.add(b, c, 100), o.add(c, b, 1000)});
  o.stream->replay(*replay);
  EXPECT_EQ(o.last(b), 1113);
  EXPECT_EQ(o.last(c), 113);
  replay->set_buffer(0, 0, c);
  replay->set_buffer(2, 1, d);
  o.stream->replay(*replay);
  EXPECT_EQ(o.last(d), 1223);
  EXPECT_EQ(o.last(b), 123);
  const long long updates = fake.calls("GraphExecKernelNodeSetParams");
  EXPECT_EQ(updates, 2);
  replay->set_buffer(0, 0, c);  // as it was: nothing to tell the driver
  o.stream->replay(*replay);
  EXPECT_EQ(fake.calls("GraphExecKernelNodeSetParams"), updates);
  EXPECT_EQ(fake.calls("GraphInstantiateWithFlags"), 1);
}

// The map follows its buffer: the kernel reads through the map only.
TEST_F(CudaOnFake, TensorMapsFollowTheirBuffers) {
  fake.on_kernel([](const char*, const unsigned long long* arguments, size_t count) {
    ASSERT_EQ(count, 4u);
    *reinterpret_cast<float*>(arguments[1]) = 1 + reinterpret_cast<const float*>(arguments[3])[3];
  });
  Opened o;
  o.program =
      o.device->load(built(*o.device, " add(const float* a, float* y, const int* E, TH_MAP map)"), {"add"});
  const BufferSpan a = o.floats(4), c = o.floats(4), y = o.floats(1);
  RecordedLaunch l = o.add(a, y, 0);
  l.launch.maps.push_back({0, {4, 1, 1}, {16, 16}, {4, 1, 1}});
  auto replay = o.stream->record({l});
  o.stream->replay(*replay);
  EXPECT_EQ(o.last(y), 4);
  const std::vector<float> other{0, 0, 0, 41};
  o.stream->copy_to_device(c, std::as_bytes(std::span(other)));
  const long long encoded = fake.calls("TensorMapEncodeTiled");
  EXPECT_EQ(encoded, 1);
  replay->set_buffer(0, 0, c);
  o.stream->replay(*replay);
  EXPECT_EQ(o.last(y), 42);
  EXPECT_EQ(fake.calls("TensorMapEncodeTiled"), encoded + 1);
  replay->set_buffer(0, 1, c);  // no map describes the result: nothing to encode
  EXPECT_EQ(fake.calls("TensorMapEncodeTiled"), encoded + 1);
  BufferSpan odd = a;
  odd.offset = 4;
  odd.bytes = 12;
  EXPECT_NE(error_of([&] { replay->set_buffer(0, 0, odd); }, Code::kLaunchFailed).find("tensor map"),
            std::string::npos);
}

TEST_F(CudaOnFake, OutOfMemoryNamesTheBytes) {
  Opened o;
  fake.script("fail MemAlloc_v2 2 2");
  o.device->allocate(100);
  const std::string message = error_of([&] { o.device->allocate(123456); }, Code::kOutOfMemory);
  EXPECT_NE(message.find("cuda:0: allocating 123456 bytes"), std::string::npos) << message;
  o.device->allocate(123456);
  error_of([&] { o.device->allocate(size_t{2} << 30); }, Code::kOutOfMemory);
}

TEST_F(CudaOnFake, ABrokenCardSaysSoToAll) {
  fake.on_kernel(add);
  {
    Opened o, other;
    const BufferSpan a = o.floats(8);
    const RecordedLaunch l = o.add(a, a, 1);
    fake.script("fail StreamSynchronize 1 700");
    o.stream->launch(l);
    for (const auto& f : std::vector<std::function<void()>>{
             [&] { o.stream->synchronize(); }, [&] { o.stream->launch(l); }, [&] { other.last(a); },
             [&] { other.floats(4); }, [&] { open_device("cuda:0")->allocate(4); }, [&] { Opened(); }}) {
      const std::string message = error_of(f, Code::kLaunchFailed);
      for (const char* words : {"cuda:0", "CUDA_ERROR_ILLEGAL_ADDRESS", "start the process anew"})
        EXPECT_NE(message.find(words), std::string::npos) << message;
    }
  }
  fake.script("");  // as a new process
  Opened o;
  EXPECT_EQ(o.last(o.floats(8)), 7);
}

TEST_F(CudaOnFake, MemoryThatIsGoneIsAnIllegalAddress) {
  fake.on_kernel(add);
  Opened o;
  const BufferSpan a = o.floats(8);
  BufferSpan gone = o.floats(8);
  RecordedLaunch l = o.add(a, {o.device->wrap(gone.buffer->native(), 32), 0, 32}, 1);
  gone = {};
  o.stream->launch(l);
  EXPECT_NE(error_of([&] { o.stream->synchronize(); }, Code::kLaunchFailed).find("ILLEGAL_ADDRESS"),
            std::string::npos);
}

TEST_F(CudaOnFake, ProgramsThatDoNotFitOrBuild) {
  Opened o;
  artifact::KernelBinary binary = built(*o.device);
  error_of([&] { o.device->load(binary, {"missing"}); }, Code::kLaunchFailed);
  binary.bytes.assign(20, std::byte{'x'});
  EXPECT_NE(error_of([&] { o.device->load(binary, {"add"}); }, Code::kCorrupt).find("refuses"),
            std::string::npos);
  binary.architecture = "sm_80";
  EXPECT_NE(error_of([&] { o.device->load(binary, {"add"}); }, Code::kUnsupported).find("sm_80"),
            std::string::npos);
  const std::string log = error_of([&] { built(*o.device, "does_not_build"); }, Code::kCompileFailed);
  EXPECT_NE(log.find("was told so"), std::string::npos) << log;
}

// A failure in the middle of making something leaves nothing behind.
TEST_F(CudaOnFake, WhatFailsHalfwayIsGivenBack) {
  Opened o;
  const BufferSpan a = o.floats(4);
  const std::vector<RecordedLaunch> launches{o.add(a, a, 1), o.add(a, a, 2)};
  const std::string before = fake.left();
  for (const char* call : {"GraphCreate 1", "GraphAddKernelNode 2", "GraphInstantiateWithFlags 1"}) {
    fake.script(("fail " + std::string(call) + " 2").c_str());
    EXPECT_THROW(o.stream->record(launches), Error) << call;
    EXPECT_EQ(fake.left(), before) << call;
  }
  const artifact::KernelBinary binary = built(*o.device);
  for (const char* call :
       {"ModuleLoadData 1", "ModuleGetFunction 1", "FuncGetAttribute 2", "FuncSetAttribute 1"}) {
    fake.script(("fail " + std::string(call) + " 2").c_str());
    EXPECT_THROW(o.device->load(binary, {"add"}), Error) << call;
    EXPECT_EQ(fake.left(), before) << call;
  }
  fake.script("fail EventRecord 1 2");
  EXPECT_THROW(o.stream->record_event(), Error);
  EXPECT_EQ(fake.left(), before);
  o.stream = nullptr;
  o.program = nullptr;
}

TEST_F(CudaOnFake, ADeviceThatFailsToOpenIsGivenBack) {
  for (const char* call : {"DevicePrimaryCtxRetain 1", "MemAlloc_v2 1", "StreamCreate 1"}) {
    fake.script(("fail " + std::string(call) + " 2").c_str());
    EXPECT_THROW(open_device("cuda:0")->make_stream(), Error) << call;
    EXPECT_EQ(fake.left(), "") << call;
  }
}

}  // namespace
}  // namespace thrice::backend
