// Sessions on the scripted driver. Would catch: a warm run that allocates or waits, sessions or threads that
// share memory, memory that grows with runs, a failed run that harms the next one or another session
// silently.
#include <thrice/status.h>

#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fake_driver.h"
#include "flow/build.h"
#include "measure_fixture.h"
#include "plan/planner.h"
#include "runtime/deployment.h"

namespace thrice::runtime {
namespace {

ReleasePtr make(const backend::DevicePtr& device) {
  auto graph = std::make_shared<ir::Graph>(test::unary_workload(ir::Op::relu).graph);
  graph->input_names = {"x"};
  graph->output_names = {"y"};
  const auto plan = std::make_shared<artifact::Plan>(plan::make_plan(*graph, device->spec(), {}).plan);
  std::vector<flow::BuiltProgram> built;
  exec::make_executable(device, graph, plan,
                        flow::program_source(device, std::make_shared<jit::KernelCache>(device, ""), &built));
  return std::make_shared<release::Release>(flow::make_release({}, *device, graph, plan, built, {}));
}

// The kernel y = relu(x) as the host computes it, and which memory it wrote: by the first element, which
// tells whose run it is.
std::map<float, std::set<unsigned long long>> written;
void relu(const char*, const unsigned long long* arguments, size_t count) {
  ASSERT_EQ(count, 3u);
  const auto* x = reinterpret_cast<const float*>(arguments[0]);
  auto* y = reinterpret_cast<float*>(arguments[1]);
  const int n = *reinterpret_cast<const int32_t*>(arguments[2]);
  for (int i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  if (n > 0) written[x[0]].insert(arguments[1]);
}

ir::Tensor values(int64_t n, float first) {
  ir::Tensor t(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i)
    t.set(i, i == 0 ? first : (i % 2 ? -1.0 : 1.0) * static_cast<double>(i) * first);
  return t;
}
std::vector<exec::Operand> on_host(int64_t n, float first) {
  return {exec::Operand::from_host(values(n, first))};
}

void expect_relu(const ir::Tensor& y, int64_t n, float first) {
  ASSERT_EQ(y.shape(), std::vector<int64_t>{n});
  const ir::Tensor x = values(n, first);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(y.as_double(i), std::max(0.0, x.as_double(i))) << i << " of " << n;
}

class CudaSession : public test::WithFakeCuda {
 protected:
  void SetUp() override {
    WithFakeCuda::SetUp();
    written.clear();
    fake.on_kernel(relu);
  }
  // Memory of the caller on the device.
  struct Callers {
    backend::DevicePtr device;
    std::unique_ptr<backend::Stream> stream;
    backend::BufferSpan x;
    int64_t n;
    Callers(const backend::DevicePtr& d, int64_t count, float first)
        : device(d), stream(d->make_stream()), n(count) {
      const auto bytes = static_cast<size_t>(n) * 4;
      x = {device->allocate(bytes), 0, bytes};
      const ir::Tensor t = values(n, first);
      stream->copy_to_device(x, {t.data(), t.bytes()});
      stream->synchronize();
    }
    std::vector<exec::Operand> operands() const {
      exec::Operand operand;
      operand.dtype = DType::kF32;
      operand.shape = {n};
      operand.device = x;
      return {operand};
    }
  };
};

TEST_F(CudaSession, AWarmRunAllocatesNothingAndWaitsForItsResultOnly) {
  const auto device = backend::open_device("cuda:0");
  Deployment deployment(device, make(device), {});
  // Warm is a length that ran twice: what its first run used is kept for the next run of the same length.
  for (const int64_t n : {7, 300, 7, 300}) expect_relu(deployment.run(on_host(n, 2)).at(0), n, 2);
  const long long made = fake.made(), waits = fake.waits();
  for (int i = 0; i < 10; ++i)
    for (const int64_t n : {7, 300}) expect_relu(deployment.run(on_host(n, 3)).at(0), n, 3);
  EXPECT_EQ(fake.made(), made);
  EXPECT_EQ(fake.waits(), waits + 20);  // one a result
}

TEST_F(CudaSession, AWarmAsynchronousRunNeitherAllocatesNorWaits) {
  const auto device = backend::open_device("cuda:0");
  Deployment deployment(device, make(device), {});
  const Callers callers(device, 100, 2);
  void* stream = nullptr;              // an own one of the deployment
  std::vector<exec::Operand> results;  // the last run's lie there while the next one runs
  for (int i = 0; i < 3; ++i) results = deployment.run_on(stream, callers.operands());
  const long long made = fake.made(), waits = fake.waits(), launches = fake.calls("GraphLaunch");
  for (int i = 0; i < 10; ++i) results = deployment.run_on(stream, callers.operands());
  EXPECT_EQ(fake.made(), made);
  EXPECT_EQ(fake.waits(), waits);
  EXPECT_EQ(fake.calls("GraphLaunch"), launches + 10);
  expect_relu(deployment.read(stream, results.at(0)), 100, 2);
}

TEST_F(CudaSession, TheCallersStreamIsUsedAndKept) {
  void* stream = fake.make_stream();
  {
    const auto device = backend::open_device("cuda:0");
    Deployment deployment(device, make(device), {});
    const Callers callers(device, 50, 2);
    const long long streams = fake.calls("StreamCreate"), waits = fake.waits();
    const auto results = deployment.run_on(stream, callers.operands());
    EXPECT_EQ(fake.calls("StreamCreate"), streams);
    EXPECT_EQ(fake.waits(), waits);
    EXPECT_TRUE(written.empty()) << "the work did not wait in the caller's stream";
    deployment.synchronize(stream);
    EXPECT_EQ(written.size(), 1u);
    expect_relu(deployment.read(stream, results.at(0)), 50, 2);
    deployment.forget_stream(stream);
    EXPECT_EQ(fake.live("streams"), 2);  // the caller's, and the one that `callers` wrote with
  }
  fake.destroy_stream(stream);
}

TEST_F(CudaSession, ThousandsOfRunsDoNotGrow) {
  const auto device = backend::open_device("cuda:0");
  Deployment deployment(device, make(device), {});
  const auto lengths = [](int i) { return 1 + i * 37 % 50; };
  for (int i = 0; i < 100; ++i) deployment.run(on_host(lengths(i), 2));
  const std::string left = fake.left();
  for (int i = 0; i < 3000; ++i) deployment.run(on_host(lengths(i), 2));
  EXPECT_EQ(fake.left(), left);
}

TEST_F(CudaSession, ThreadsAndSessionsShareNoMemory) {
  const auto device = backend::open_device("cuda:0");
  const ReleasePtr release = make(device);
  Deployment first(device, release, {}), second(device, release, {});
  std::vector<std::thread> threads;
  std::vector<std::vector<exec::Operand>> kept(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Deployment& deployment = t % 2 ? first : second;
      const float mark = 10.0f + static_cast<float>(t);
      for (int i = 0; i < 50; ++i)
        expect_relu(deployment.run(on_host(20 + i % 3, mark)).at(0), 20 + i % 3, mark);
      kept[static_cast<size_t>(t)] = deployment.run_on(nullptr, on_host(20, 100 + mark));
    });
  for (std::thread& thread : threads) thread.join();
  for (const float mark : {11.0f, 13.0f})
    for (const float other : {10.0f, 12.0f})
      for (const unsigned long long place : written[mark]) EXPECT_EQ(written[other].count(place), 0u);
  // Results that are held at one time lie apart, and hold what their own run computed.
  std::set<const void*> places;
  for (size_t t = 0; t < 4; ++t) {
    Deployment& deployment = t % 2 ? first : second;
    EXPECT_TRUE(places.insert(kept[t].at(0).device.buffer->native()).second);
    expect_relu(deployment.read(nullptr, kept[t][0]), 20, 110.0f + static_cast<float>(t));
  }
}

TEST_F(CudaSession, OutOfMemoryNamesTheBytesAndTheNextRunWorks) {
  const auto device = backend::open_device("cuda:0");
  Deployment deployment(device, make(device), {});
  expect_relu(deployment.run(on_host(5, 2)).at(0), 5, 2);
  try {
    deployment.run({exec::Operand::from_host(ir::Tensor(DType::kF32, {200 << 20}))});
    FAIL() << "800 MiB twice went into 1 GiB";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kOutOfMemory);
    EXPECT_NE(std::string(e.what()).find("allocating 838860800 bytes"), std::string::npos) << e.what();
  }
  expect_relu(deployment.run(on_host(5, 2)).at(0), 5, 2);
  for (int i = 0; i < 3; ++i) expect_relu(deployment.run(on_host(5, 2)).at(0), 5, 2);
  // The block of integers comes first; where an input finds no room, idle buffers go and the driver is asked
  // again.
  fake.script("fail MemAlloc_v2 2 2");
  expect_relu(deployment.run(on_host(5000, 2)).at(0), 5000, 2);
}

TEST_F(CudaSession, AnIllegalAddressEndsEverySessionWithWords) {
  const auto device = backend::open_device("cuda:0");
  const ReleasePtr release = make(device);
  Deployment first(device, release, {}), second(device, release, {});
  expect_relu(first.run(on_host(5, 2)).at(0), 5, 2);
  expect_relu(second.run(on_host(5, 2)).at(0), 5, 2);
  fake.script("fail StreamSynchronize 1 700");
  for (Deployment* deployment : {&first, &first, &second}) try {
      deployment->run(on_host(5, 2));
      ADD_FAILURE() << "ran on a broken card";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kLaunchFailed);
      for (const char* words : {"cuda:0", "ILLEGAL_ADDRESS", "every session", "start the process anew"})
        EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
}

TEST_F(CudaSession, SessionsOnTwoCards) {
  fake.script("cards 2\nuuid 01\ncard 1\nuuid 02");
  const auto device = backend::open_device("cuda:0"), other = backend::open_device("cuda:GPU-02000000");
  Deployment first(device, make(device), {}), second(other, make(other), {});
  for (int i = 0; i < 3; ++i) {
    expect_relu(first.run(on_host(9, 2)).at(0), 9, 2);
    expect_relu(second.run(on_host(9, 3)).at(0), 9, 3);
  }
  fake.script("cards 2\nuuid 01\ncard 1\nuuid 02\nfail MemcpyHtoDAsync_v2 1 700");
  EXPECT_THROW(second.run(on_host(9, 3)), Error);
  EXPECT_THROW(second.run(on_host(9, 3)), Error);
  expect_relu(first.run(on_host(9, 2)).at(0), 9, 2);  // the other card goes on
}

}  // namespace
}  // namespace thrice::runtime
