// Would catch: a weight that stays on the device although only packing reads it, or goes although others read
// it too; packed copies made twice of one weight; values that share an arena's bytes while both are needed; a
// prediction of memory that differs from what a run takes; buffers that a recorded run holds on to; a request
// that is refused and leaves others without their arena or their place among the bindings.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <functional>
#include <set>

#include "exec/lifetimes.h"
#include "exec/predict.h"
#include "planned_graph.h"

namespace thrice::exec {
namespace {

using ir::Dim;
using ir::GraphMaker;
using ir::Op;

// Launches nothing, and so has no limits of threads and shared memory.
class IdleStream : public backend::Stream {
 public:
  void copy_to_device(const backend::BufferSpan& to, std::span<const std::byte> from) override {
    inner_->copy_to_device(to, from);
  }
  void copy_to_host(std::span<std::byte> to, const backend::BufferSpan& from) override {
    inner_->copy_to_host(to, from);
  }
  void copy(const backend::BufferSpan& to, const backend::BufferSpan& from) override {
    inner_->copy(to, from);
  }
  void fill(const backend::BufferSpan& to, std::byte value) override { inner_->fill(to, value); }
  void launch(const backend::RecordedLaunch&) override {}
  std::unique_ptr<backend::Replay> record(std::vector<backend::RecordedLaunch> launches) override {
    for (const backend::RecordedLaunch& launch : launches)
      for (const backend::BufferSpan& span : launch.buffers)
        if (span.bytes > 0 && !span.buffer.get()) throw Error(Code::kInternal, "no buffer");
    struct Nothing : backend::Replay {
      void set_buffer(size_t, size_t, const backend::BufferSpan&) override {}
    };
    return std::make_unique<Nothing>();
  }
  void replay(backend::Replay&) override {}
  std::unique_ptr<backend::Event> record_event() override { return inner_->record_event(); }
  void synchronize() override {}

 private:
  std::unique_ptr<backend::Stream> inner_ = backend::open_device("null:0")->make_stream();
};

// The null device, which counts what is allocated, and refuses what it is told to.
class CountingDevice : public backend::Device {
 public:
  const target::DeviceSpec& spec() const override { return inner_->spec(); }
  backend::BufferPtr allocate(size_t bytes) override {
    if (refuses && refuses(bytes)) throw Error(Code::kOutOfMemory, "no room");
    *used += static_cast<int64_t>(bytes);
    most = std::max(most, *used);
    backend::BufferPtr buffer = inner_->allocate(bytes);
    backend::Buffer* raw = buffer.get();
    return {raw, [buffer, used = used, bytes](backend::Buffer*) mutable {
              *used -= static_cast<int64_t>(bytes);
              buffer.reset();
            }};
  }
  backend::BufferPtr wrap(void* native, size_t bytes) override { return inner_->wrap(native, bytes); }
  std::unique_ptr<backend::Stream> make_stream(void*) override { return std::make_unique<IdleStream>(); }
  backend::ProgramPtr load(const artifact::KernelBinary& b, const std::vector<std::string>& k) override {
    return inner_->load(b, k);
  }
  backend::Compiler* compiler() override { return nullptr; }
  int64_t free_memory_bytes() override { return -1; }
  std::shared_ptr<int64_t> used = std::make_shared<int64_t>(0);
  int64_t most = 0;
  std::function<bool(size_t)> refuses;

 private:
  backend::DevicePtr inner_ = backend::open_device("null:0");
};

const artifact::Schedule kWgmma =
    artifact::Schedule::parse("matmul/wgmma tile_m=64 tile_n=64 stages=2 split=1");

std::shared_ptr<const Executable> executable(const std::shared_ptr<CountingDevice>& device,
                                             const std::shared_ptr<ir::Graph>& graph, artifact::Plan plan) {
  for (artifact::Segment& segment : plan.segments)
    for (artifact::PlanStep& step : segment.steps)
      if (step.schedule.family == "matmul") step.schedule = kWgmma;
  return make_executable(device, graph, std::make_shared<artifact::Plan>(std::move(plan)),
                         [&](const ir::Workload&, const family::Family&, const artifact::Schedule&) {
                           artifact::KernelBinary binary;
                           binary.architecture = "null";
                           return device->load(binary, std::vector<std::string>(8, "k"));
                         });
}

ir::Tensor weight(int64_t rows, int64_t cols, float first) {
  ir::Tensor t(DType::kF32, {rows, cols});
  t.mutable_data();
  t.set(0, first);
  return t;
}

constexpr int64_t kWeight = 256 * 256 * 4, kPacked = kWeight + 4 * 256;  // planes, and a byte a step and row

// x W1 W2, W2 also returned when `is_tied`.
std::shared_ptr<ir::Graph> products(bool is_tied, bool is_same = false) {
  GraphMaker m;
  const auto x = m.input({Dim::symbol("n"), 256});
  const auto first = m.constant(weight(256, 256, 1));
  const auto second = is_same ? first : m.constant(weight(256, 256, 2));
  m.output(m.add(Op::matmul, {m.add(Op::matmul, {x, first}), second}));
  if (is_tied) m.output(m.add(Op::neg, {second}));
  return test::with_origins(m);
}

void run(Executor& executor, int64_t n) { executor.run_host({ir::Tensor(DType::kF32, {n, 256})}); }

TEST(Weights, PackedCopiesTakeTheirPlaceWhereNothingElseReadsThem) {
  const auto graph = products(false);
  const auto device = std::make_shared<CountingDevice>();
  const auto code = executable(device, graph, test::planned(*graph, "original").plan);
  EXPECT_EQ(code->constant_bytes, 2 * kWeight);
  EXPECT_EQ(code->resident_bytes, 0);
  Executor executor(code);
  run(executor, 70);
  const MemoryUse use = executor.memory();
  EXPECT_EQ(use.held, 2 * kPacked);
  EXPECT_EQ(use.peak(), use.pool + use.arena + 2 * (kPacked - kWeight));
  // Beside all packed weights at most one that is not packed; parameter blocks are the rest.
  EXPECT_LE(device->most, use.total() + kWeight + (64 << 10));
  EXPECT_LE(*device->used, use.total() + (64 << 10));
  // Another length and another executor take what is packed.
  run(executor, 300);
  Executor other(code);
  run(other, 70);
  EXPECT_EQ(executor.memory().held, 2 * kPacked);
}

TEST(Weights, WhatOthersReadTooStays) {
  const auto graph = products(true);
  const auto device = std::make_shared<CountingDevice>();
  const auto code = executable(device, graph, test::planned(*graph, "original").plan);
  EXPECT_EQ(code->resident_bytes, kWeight);
  Executor executor(code);
  run(executor, 70);
  EXPECT_EQ(executor.memory().held, kWeight + 2 * kPacked);
  EXPECT_EQ(executor.memory().weights, 2 * kWeight);
}

TEST(Weights, OnePackedCopyOfAWeightThatTwoStepsShare) {
  const auto graph = products(false, true);
  const auto device = std::make_shared<CountingDevice>();
  const auto code = executable(device, graph, test::planned(*graph, "original").plan);
  Executor executor(code);
  run(executor, 70);
  EXPECT_EQ(executor.memory().held, kPacked);
}

// Of other regions too: what counts is what the packing kernel does.
TEST(Weights, OnePackedCopyForDifferentRegions) {
  GraphMaker m;
  const auto w = m.constant(weight(256, 256, 1));
  m.output(m.add(Op::matmul, {m.input({64, 256}), w}));
  m.output(m.add(Op::matmul, {m.input({128, 256}), w}));
  const auto graph = test::with_origins(m);
  const auto device = std::make_shared<CountingDevice>();
  const auto code = executable(device, graph, test::planned(*graph, "original").plan);
  Executor executor(code);
  executor.run_host({ir::Tensor(DType::kF32, {64, 256}), ir::Tensor(DType::kF32, {128, 256})});
  EXPECT_EQ(executor.memory().held, kPacked);
}

TEST(Prediction, IsWhatARunTakes) {
  for (const bool is_tied : {false, true})
    for (const int64_t n : {1, 70, 1000}) {
      const auto graph = products(is_tied);
      const auto device = std::make_shared<CountingDevice>();
      const auto code = executable(device, graph, test::planned(*graph, "original").plan);
      const PredictedMemory predicted = predict_memory(*code, ir::Bindings{{"n", n}});
      Executor executor(code);
      for (int i = 0; i < 3; ++i) run(executor, n);
      const MemoryUse use = executor.memory();
      EXPECT_EQ(predicted.use.weights, use.weights);
      EXPECT_EQ(predicted.use.held, use.held);
      EXPECT_EQ(predicted.use.arena, use.arena);
      EXPECT_EQ(predicted.use.arena_lower_bound, use.arena_lower_bound);
      EXPECT_EQ(predicted.use.pool, use.pool);
      EXPECT_EQ(predicted.missing, "");
      ASSERT_FALSE(predicted.holders.empty());
      EXPECT_EQ(predicted.fullest, "matmul");
    }
}

// Launch by launch: what one writes is not where another's operand lies that is still to be read.
TEST(Bind, LaunchesOfOneStepShareMemoryOnlyWhereTheyMay) {
  const auto graph = products(false);
  const auto device = std::make_shared<CountingDevice>();
  const auto code = executable(device, graph, test::planned(*graph, "original").plan);
  RunFacts facts(*graph);
  facts.set_input(0, DType::kF32, {300, 256});
  const BoundSegment bound = bind_segment(*code, 0, facts, find_lifetimes(*code).escapes[0]);
  ASSERT_EQ(bound.once.size(), 2u);
  ASSERT_EQ(bound.launches.size(), 4u);  // pack, multiply, pack, multiply
  const auto argument = [&](size_t launch, size_t a) { return bound.launches[launch].arguments[a]; };
  // Arguments: a, b, y, planes and scales of a, planes and scales of b.
  EXPECT_EQ(argument(0, 2).storage, Storage::kUnused);
  EXPECT_EQ(argument(1, 0).storage, Storage::kUnused);
  EXPECT_EQ(bound.once[0].arguments[1].storage, Storage::kPacked);
  const auto apart = [](const BoundArgument& a, const BoundArgument& b) {
    return a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
  };
  EXPECT_TRUE(apart(argument(1, 2), argument(1, 3)));  // the first product and the planes it reads
  EXPECT_TRUE(apart(argument(2, 0), argument(2, 3)));
  // The second product's planes may lie where the first one's did: the arena holds three pieces at most.
  EXPECT_EQ(bound.arena_bytes, bound.arena_lower_bound);
  EXPECT_LT(bound.arena_bytes, argument(0, 3).bytes + argument(1, 2).bytes + argument(2, 3).bytes);
}

// A run's outputs are the pool's again once the caller lets go, also while the shapes stay known.
TEST(Executor, ARequestThatFindsNoMemoryLeavesOthersAsTheyWere) {
  const auto graph = products(false);
  const auto device = std::make_shared<CountingDevice>();
  Executor executor(executable(device, graph, test::planned(*graph, "original").plan));
  const auto refused = [&](int64_t n) {
    try {
      run(executor, n);
    } catch (const Error& error) {
      return error.code() == Code::kOutOfMemory;
    }
    return false;
  };
  run(executor, 64);
  // An arena of more than a megabyte: the one that was there has gone by then.
  device->refuses = [](size_t bytes) { return bytes > 1 << 20; };
  EXPECT_TRUE(refused(2000));
  for (int i = 0; i < 3; ++i) EXPECT_NO_THROW(run(executor, 64)) << i;
  // More lengths than bindings are kept, each refused after it was looked up.
  device->refuses = {};
  run(executor, 500);
  device->refuses = [](size_t) { return true; };
  int refusals = 0;
  for (int64_t n = 499; n > 420; --n) refusals += refused(n);
  EXPECT_GT(refusals, 64);
  EXPECT_NO_THROW(run(executor, 500));  // still bound: it takes nothing
  device->refuses = {};
  for (int64_t n = 499; n > 420; --n) EXPECT_NO_THROW(run(executor, n));
  EXPECT_NO_THROW(run(executor, 500));
}

TEST(Executor, RecordedRunsHoldNoBuffersOfTheCallersOrThePool) {
  const auto graph = products(false);
  const auto device = std::make_shared<CountingDevice>();
  Executor executor(executable(device, graph, test::planned(*graph, "original").plan));
  run(executor, 70);
  const int64_t once = executor.memory().pool;
  EXPECT_EQ(once, 2 * static_cast<int64_t>(pooled_bytes(70 * 256 * 4)));
  std::set<const void*> outputs;
  for (int i = 0; i < 6; ++i)
    outputs.insert(
        executor.run({Operand::from_host(ir::Tensor(DType::kF32, {70, 256}))})[0].device.buffer->native());
  EXPECT_EQ(executor.memory().pool, once);
  EXPECT_LE(outputs.size(), 2u);
}

}  // namespace
}  // namespace thrice::exec
