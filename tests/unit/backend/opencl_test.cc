// Would catch: wrong argument order or offsets in launches, limits of the driver let through instead of ours,
// binaries that do not come back, zero-size buffers and grids that crash, replays that forget an exchanged
// buffer.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "backend/backend.h"

namespace thrice::backend {
namespace {

constexpr const char* kText = R"CL(
__kernel void add_scaled(__global const float* a, __global float* y, __global const int* E) {
  int i = get_global_id(0);
  if (i < E[0]) y[i] = a[i] + E[1];
}
__kernel void wide(__global float* y, __global const int* E) {
  __local float tile[16384];
  int i = get_local_id(0);
  tile[(i * 97) & 16383] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  y[i] = tile[E[0]];
}
)CL";

artifact::KernelSource source(std::vector<std::string> kernels) {
  artifact::KernelSource s;
  s.text = kText;
  s.kernels = std::move(kernels);
  s.key = "test";
  return s;
}

Code code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.code();
  }
  return Code::kOk;
}

class OpenCl : public testing::Test {
 protected:
  void SetUp() override {
    for (const BackendReport& r : list_backends())
      if (r.name == "opencl" && !r.available) GTEST_SKIP() << "skipped: " << r.reason;
    device = open_device("opencl:0");
    stream = device->make_stream();
  }
  BufferSpan put(const std::vector<int32_t>& values) {
    BufferSpan span{device->allocate(values.size() * 4), 0, values.size() * 4};
    stream->copy_to_device(span, std::as_bytes(std::span(values)));
    return span;
  }
  std::vector<float> get(const BufferSpan& span) {
    std::vector<float> values(span.bytes / 4);
    stream->copy_to_host(std::as_writable_bytes(std::span(values)), span);
    return values;
  }
  RecordedLaunch add_scaled(ProgramPtr program, BufferSpan a, BufferSpan y, int n, int shift) {
    RecordedLaunch l;
    l.program = std::move(program);
    l.launch.grid = {(n + 63) / 64, 1, 1};
    l.launch.block = {64, 1, 1};
    l.buffers = {std::move(a), std::move(y)};
    l.extents = put({n, shift});
    return l;
  }
  void run_once(const artifact::KernelBinary& binary);
  BufferSpan floats(size_t n) {
    BufferSpan span{device->allocate(n * 4), 0, n * 4};
    std::vector<float> values(n);
    std::iota(values.begin(), values.end(), 0.f);
    stream->copy_to_device(span, std::as_bytes(std::span(values)));
    return span;
  }
  DevicePtr device;
  std::unique_ptr<Stream> stream;
};

TEST_F(OpenCl, DescribesItself) {
  const target::DeviceSpec& spec = device->spec();
  EXPECT_EQ(spec.id, "opencl:0");
  EXPECT_FALSE(spec.name.empty());
  EXPECT_FALSE(spec.architecture.empty());
  EXPECT_LE(spec.max_threads_per_block, 1024);
  EXPECT_LE(spec.max_shared_bytes, 48 * 1024);
  EXPECT_GT(spec.memory_bytes, 0);
  EXPECT_EQ(spec.bandwidth_gbs, 0);
  EXPECT_TRUE(!spec.is_cpu || device->free_memory_bytes() > 0);
  EXPECT_EQ(open_device("opencl:0"), device);  // one device an id
}

TEST_F(OpenCl, CompiledProgramComesBackFromItsBinary) {
  // The form for the cache, then the form for a release.
  run_once(device->compiler()->compile(source({"add_scaled"})));
  run_once(device->compiler()->compile_to_ship(source({"add_scaled"})));
}

void OpenCl::run_once(const artifact::KernelBinary& binary) {
  EXPECT_EQ(binary.key, "test");
  ASSERT_FALSE(binary.bytes.empty());
  ProgramPtr program = device->load(binary, {"add_scaled"});
  const BufferSpan a = floats(100), whole{device->allocate(kAlignment * 2), 0, kAlignment * 2};
  stream->fill(whole, std::byte{0});
  const BufferSpan y{whole.buffer, kAlignment, 400};  // a part of a larger buffer
  stream->launch(add_scaled(program, a, y, 100, 7));
  const std::vector<float> got = get(whole);
  for (size_t i = 0; i < kAlignment / 4; ++i) ASSERT_EQ(got[i], 0) << i;
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(got[kAlignment / 4 + i], static_cast<float>(i) + 7) << i;
  EXPECT_EQ(got[kAlignment / 4 + 100], 0);
}

TEST_F(OpenCl, WrongBinariesAreRefused) {
  artifact::KernelBinary binary = device->compiler()->compile_to_ship(source({"add_scaled"}));
  EXPECT_EQ(code_of([&] { device->load(binary, {"no_such_kernel"}); }), Code::kLaunchFailed);
  artifact::KernelBinary other = binary;
  other.architecture = "another device";
  EXPECT_EQ(code_of([&] { device->load(other, {"add_scaled"}); }), Code::kUnsupported);
  artifact::KernelBinary damaged = binary;
  damaged.bytes.assign(64, std::byte{0x5A});
  EXPECT_EQ(code_of([&] { device->load(damaged, {"add_scaled"}); }), Code::kCorrupt);
  damaged.bytes.clear();
  EXPECT_EQ(code_of([&] { device->load(damaged, {"add_scaled"}); }), Code::kCorrupt);
}

TEST_F(OpenCl, BadSourceGivesTheLog) {
  artifact::KernelSource bad;
  bad.text = "__kernel void f(__global float* y) { y[0] = undeclared_thing; }";
  bad.kernels = {"f"};
  try {
    device->compiler()->compile(bad);
    FAIL() << "built";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kCompileFailed);
    EXPECT_NE(std::string(e.what()).find("undeclared_thing"), std::string::npos) << e.what();
  }
}

TEST_F(OpenCl, OurLimitsHold) {
  EXPECT_EQ(code_of([&] { device->compiler()->compile(source({"wide"})); }),
            Code::kUnsupported);  // 64 KiB local
  ProgramPtr program = device->load(device->compiler()->compile(source({"add_scaled"})), {"add_scaled"});
  RecordedLaunch l = add_scaled(program, floats(8), floats(8), 8, 0);
  l.launch.block = {2048, 1, 1};
  EXPECT_EQ(code_of([&] { stream->launch(l); }), Code::kLaunchFailed);
  l.launch.block = {64, 32, 1};
  EXPECT_EQ(code_of([&] { stream->launch(l); }), Code::kLaunchFailed);
  l.launch.block = {64, 1, 1};
  l.buffers.pop_back();
  EXPECT_EQ(code_of([&] { stream->launch(l); }), Code::kLaunchFailed);
  EXPECT_EQ(code_of([&] { device->allocate(size_t{1} << 60); }), Code::kOutOfMemory);
}

TEST_F(OpenCl, EmptyThingsAreNothing) {
  ProgramPtr program = device->load(device->compiler()->compile(source({"add_scaled"})), {"add_scaled"});
  const BufferSpan nothing{device->allocate(0), 0, 0};
  EXPECT_EQ(nothing.buffer->bytes(), 0u);
  RecordedLaunch l = add_scaled(program, nothing, BufferSpan{}, 0, 1);  // grid 0
  EXPECT_EQ(l.launch.grid[0], 0);
  stream->launch(l);
  l.launch.grid = {1, 1, 1};  // launched, and touches nothing
  stream->launch(l);
  stream->copy_to_device(nothing, {});
  stream->copy_to_host({}, nothing);
  stream->copy(nothing, nothing);
  stream->fill(nothing, std::byte{1});
  stream->synchronize();
}

TEST_F(OpenCl, ReplayRunsAllAndTakesNewBuffers) {
  ProgramPtr program = device->load(device->compiler()->compile(source({"add_scaled"})), {"add_scaled"});
  const BufferSpan a = floats(10), b = floats(10), y = floats(10), z = floats(10);
  RecordedLaunch skipped = add_scaled(program, a, a, 0, 0);
  auto replay = stream->record({add_scaled(program, a, b, 10, 1), skipped, add_scaled(program, b, y, 10, 1)});
  stream->replay(*replay);
  EXPECT_EQ(get(y)[9], 11);
  replay->set_buffer(2, 1, z);
  stream->replay(*replay);
  EXPECT_EQ(get(z)[9], 11);
  EXPECT_EQ(code_of([&] { replay->set_buffer(2, 2, z); }), Code::kInternal);
}

TEST_F(OpenCl, EventsGrow) {
  ProgramPtr program = device->load(device->compiler()->compile(source({"add_scaled"})), {"add_scaled"});
  const RecordedLaunch l = add_scaled(program, floats(1 << 20), floats(1 << 20), 1 << 20, 1);
  stream->launch(l);
  const auto begin = stream->record_event();
  for (int i = 0; i < 4; ++i) stream->launch(l);
  const auto end = stream->record_event();
  EXPECT_GT(end->microseconds_since(*begin), 0);
}

TEST_F(OpenCl, StreamsOfTwoThreadsShareAProgram) {
  ProgramPtr program = device->load(device->compiler()->compile(source({"add_scaled"})), {"add_scaled"});
  std::vector<RecordedLaunch> launches;
  for (int t = 0; t < 2; ++t)
    launches.push_back(add_scaled(program, floats(1000), floats(1000), 1000, t + 1));
  stream->synchronize();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      const auto own = device->make_stream();
      for (int i = 0; i < 50; ++i) own->launch(launches[static_cast<size_t>(t)]);
      own->synchronize();
    });
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < 2; ++t) EXPECT_EQ(get(launches[static_cast<size_t>(t)].buffers[1])[999], 999 + t + 1);
}

TEST_F(OpenCl, SpansOutsideTheirBufferAreRefused) {
  const BufferSpan a = floats(8);
  std::vector<std::byte> host(64);
  EXPECT_EQ(code_of([&] { stream->copy_to_host(host, BufferSpan{a.buffer, 0, 64}); }), Code::kInternal);
  EXPECT_EQ(code_of([&] { stream->copy_to_host(host, BufferSpan{nullptr, 0, 64}); }), Code::kInternal);
  EXPECT_EQ(code_of([&] { stream->copy_to_host(host, BufferSpan{a.buffer, 0, 32}); }), Code::kInternal);
}

TEST(Registry, MissingThingsAreNamed) {
  const auto reports = list_backends();
  ASSERT_EQ(reports.size(), 3u);
  for (const BackendReport& r : reports) EXPECT_TRUE(r.available || !r.reason.empty()) << r.name;
  EXPECT_EQ(code_of([] { open_device("opencl:77"); }), Code::kNotFound);
  EXPECT_EQ(code_of([] { open_device("abacus:0"); }), Code::kNotFound);
  EXPECT_EQ(open_device("null:0")->spec().id, "null:0");
}

}  // namespace
}  // namespace thrice::backend
