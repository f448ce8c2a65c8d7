// Would catch: wrong shapes that reach a kernel, symbols that two inputs bind differently, a plan of another
// graph or order that runs, buffers that are handed out twice or never come back, temporaries that overlap
// while both live.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cstring>
#include <functional>

#include "exec/bind.h"
#include "exec/buffer_pool.h"
#include "exec/executor.h"
#include "planned_graph.h"

namespace thrice::exec {
namespace {

using ir::Dim;
using ir::GraphMaker;
using ir::Op;

// The code and the message of the error that `call` throws.
template <class Call>
std::pair<Code, std::string> error_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {Code::kOk, "no error"};
}
void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

backend::DevicePtr null_device() { return backend::open_device("null:0"); }
const ProgramSource kNoProgram = [](const ir::Workload&, const family::Family&, const artifact::Schedule&) {
  artifact::KernelBinary binary;
  binary.architecture = "null";
  return null_device()->load(binary, std::vector<std::string>(8, "k"));
};
std::shared_ptr<const Executable> executable(const std::shared_ptr<const ir::Graph>& graph,
                                             const artifact::Plan& plan) {
  return make_executable(null_device(), graph, std::make_shared<artifact::Plan>(plan), kNoProgram);
}

TEST(RunFacts, BindSymbolsAndRefuseWhatContradicts) {
  GraphMaker m;
  const auto n = Dim::symbol("n");
  const auto a = m.input({n, 8}), b = m.input({n, 8});
  const auto sum = m.add(Op::add, {a, b});
  const auto both = m.add(Op::concat, {sum, sum}, {{"axis", int64_t{0}}});
  m.output(both);
  const auto graph = test::with_origins(m);
  RunFacts facts(*graph);
  facts.set_input(0, DType::kF32, {5, 8});
  EXPECT_EQ(facts.bindings().at("n"), 5);
  EXPECT_EQ(facts.shape(both), (std::vector<int64_t>{10, 8}));
  const auto [code, text] = error_of([&] { facts.set_input(1, DType::kF32, {6, 8}); });
  EXPECT_EQ(code, Code::kInvalidArgument);
  expect_words(text, {"'x1'", "[6, 8]", "axis 0 must be 5"});
  expect_words(error_of([&] { facts.set_input(1, DType::kF64, {5, 8}); }).second, {"'x1'", "f64", "f32"});
  expect_words(error_of([&] { facts.set_input(1, DType::kF32, {40}); }).second, {"'x1'", "rank 2"});
}

TEST(RunFacts, FollowShapeArithmetic) {
  GraphMaker m;
  const auto x = m.input({Dim::symbol("n"), 6});
  const auto shape = m.add(Op::shape, {x});
  const auto half = m.add(Op::div, {shape, m.ints({1, 2})});
  const auto y = m.add(Op::reshape, {x, m.ints({-1})});
  m.output(y);
  m.output(half);
  const auto graph = test::with_origins(m);
  RunFacts facts(*graph);
  facts.set_input(0, DType::kF32, {7, 6});
  EXPECT_EQ(facts.shape(y), std::vector<int64_t>{42});
  EXPECT_EQ(facts.ints(half), (std::vector<int64_t>{7, 3}));
}

// exp -> log -> neg over [n, 8], one region each.
std::shared_ptr<ir::Graph> chain() {
  GraphMaker m;
  const auto x = m.input({Dim::symbol("n"), 8});
  m.output(m.add(Op::neg, {m.add(Op::log, {m.add(Op::exp, {x})})}));
  return test::with_origins(m);
}

TEST(MakeExecutable, APlanThatDoesNotFitIsDamage) {
  const auto graph = chain();
  const artifact::Plan good = test::planned(*graph, "original").plan;
  EXPECT_EQ(executable(graph, good)->segments.at(0).steps.size(), 3u);
  const auto refused = [&](const char* what, const std::function<void(artifact::Plan&)>& damage) {
    artifact::Plan plan = good;
    damage(plan);
    const auto [code, text] = error_of([&] { executable(graph, plan); });
    EXPECT_EQ(code, Code::kCorrupt) << what << ": " << text;
  };
  refused("another graph", [](auto& p) { p.graph_hash = "0"; });
  refused("wrong order", [](auto& p) { std::swap(p.segments[0].steps[0], p.segments[0].steps[1]); });
  refused("a node twice", [](auto& p) { p.segments[0].steps.push_back(p.segments[0].steps[0]); });
  refused("no node", [](auto& p) { p.segments[0].steps[1].nodes = {99}; });
  refused("a negative node", [](auto& p) { p.segments[0].steps[1].nodes = {-1}; });
  refused("no nodes", [](auto& p) { p.segments[0].steps[1].nodes.clear(); });
  refused("another workload", [](auto& p) { p.segments[0].steps[1].workload = "0"; });
  refused("unknown family", [](auto& p) { p.segments[0].steps[1].schedule.family = "sorcery"; });
  refused("a body that is not there", [](auto& p) { p.bodies.push_back({0, 0, {{}}}); });
}

TEST(Bind, ALengthTakesTheKernelOfItsBucket) {
  const auto graph = chain();
  artifact::Plan plan = test::planned(*graph, "original").plan;
  plan.bucket_symbol = "n";
  artifact::PlanStep& log = plan.segments[0].steps[1];
  for (const int64_t up_to : {4, 16}) {
    log.buckets.push_back({up_to, log.schedule});
    log.buckets.back().schedule.set("block", up_to == 4 ? 32 : 64);
  }
  std::map<backend::ProgramPtr, std::string> made;
  const auto code = make_executable(null_device(), graph, std::make_shared<artifact::Plan>(plan),
                                    [&](const auto& workload, const auto& family, const auto& schedule) {
                                      const backend::ProgramPtr program =
                                          kNoProgram(workload, family, schedule);
                                      made[program] = schedule.str();
                                      return program;
                                    });
  const auto schedule_at = [&](int64_t n) {
    RunFacts facts(*graph);
    facts.set_input(0, DType::kF32, {n, 8});
    const BoundSegment bound = bind_segment(*code, 0, facts, std::vector<uint8_t>(graph->values.size(), 0));
    return made.at(bound.launches.at(1).program);
  };
  EXPECT_EQ(schedule_at(1), log.buckets[0].schedule.str());
  EXPECT_EQ(schedule_at(4), log.buckets[0].schedule.str());
  EXPECT_EQ(schedule_at(5), log.buckets[1].schedule.str());
  EXPECT_EQ(schedule_at(16), log.buckets[1].schedule.str());
  EXPECT_EQ(schedule_at(17), log.schedule.str());
}

TEST(Bind, TemporariesThatLiveTogetherDoNotOverlap) {
  const auto graph = chain();
  const auto code = executable(graph, test::planned(*graph, "original").plan);
  for (const int64_t n : {0, 1, 1000}) {
    RunFacts facts(*graph);
    facts.set_input(0, DType::kF32, {n, 8});
    std::vector<uint8_t> escapes(graph->values.size(), 0);
    escapes[static_cast<size_t>(graph->outputs[0])] = 1;
    const BoundSegment bound = bind_segment(*code, 0, facts, escapes);
    ASSERT_EQ(bound.steps.size(), 3u);
    EXPECT_EQ(bound.launches.size(), n == 0 ? 0u : 3u);
    EXPECT_GE(bound.arena_bytes, bound.arena_lower_bound);
    EXPECT_EQ(bound.carried.size(), 1u);
    if (n == 0) continue;
    // log reads what exp made and writes elsewhere; neg writes a buffer of its own, since its result is
    // returned.
    const auto& exp_out = bound.launches[0].arguments[1];
    const auto& log_in = bound.launches[1].arguments[0];
    const auto& log_out = bound.launches[1].arguments[1];
    EXPECT_EQ(bound.launches[0].arguments[0].storage, Storage::kOutside);
    EXPECT_EQ(exp_out.storage, Storage::kArena);
    EXPECT_EQ(log_in.offset, exp_out.offset);
    EXPECT_EQ(log_out.storage, Storage::kArena);
    EXPECT_GE(std::abs(log_out.offset - exp_out.offset), exp_out.bytes);
    EXPECT_EQ(bound.launches[2].arguments[1].storage, Storage::kCarried);
    EXPECT_EQ(exp_out.bytes, n * 8 * 4);
    for (const BoundLaunch& launch : bound.launches)
      EXPECT_EQ(launch.extents_offset % backend::kAlignment, 0);
  }
}

TEST(Executor, BadInputsLeaveItUsable) {
  const auto graph = chain();
  Executor executor(executable(graph, test::planned(*graph).plan));
  const auto run = [&](const std::vector<ir::Tensor>& inputs) { return executor.run_host(inputs); };
  EXPECT_EQ(error_of([&] { run({}); }).first, Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { run({ir::Tensor(DType::kF32, {2, 9})}); }).first, Code::kInvalidArgument);
  EXPECT_EQ(error_of([&] { run({ir::Tensor(DType::kI64, {2, 8})}); }).first, Code::kInvalidArgument);
  for (const int64_t n : {2, 5, 2, 0}) EXPECT_EQ(run({ir::Tensor(DType::kF32, {n, 8})})[0].shape()[0], n);
}

TEST(Executor, MemoryDoesNotGrowWithRuns) {
  const auto graph = chain();
  Executor executor(executable(graph, test::planned(*graph, "original").plan));
  // A length that has been seen keeps its bindings, and with them its buffers; it takes no more the next
  // time.
  for (int64_t i = 0; i < 9; ++i) executor.run_host({ir::Tensor(DType::kF32, {100 * (1 + i % 3), 8})});
  const int64_t once = executor.peak_bytes();
  EXPECT_GT(once, 300 * 8 * 4);
  for (int64_t i = 0; i < 60; ++i) executor.run_host({ir::Tensor(DType::kF32, {100 * (1 + i % 3), 8})});
  EXPECT_EQ(executor.peak_bytes(), once);
}

TEST(Executor, HostStepsComputeAndSetSizes) {
  GraphMaker m;
  const auto x = m.input({Dim::symbol("n")});
  m.output(m.add(Op::nonzero, {x}));
  const auto graph = test::with_origins(m);
  Executor executor(executable(graph, test::planned(*graph).plan));
  for (int pass = 0; pass < 2; ++pass) {
    const auto some = executor.run_host({ir::Tensor::of<int>(DType::kF32, {5}, {0, 3, 0, 0, 7})})[0];
    EXPECT_EQ(some.shape(), (std::vector<int64_t>{1, 2}));
    EXPECT_EQ(some.as_int(1), 4);
    const auto none = executor.run_host({ir::Tensor(DType::kF32, {3})})[0];
    EXPECT_EQ(none.shape(), (std::vector<int64_t>{1, 0}));
  }
}

// The null device with little memory.
class SmallDevice : public backend::Device {
 public:
  const target::DeviceSpec& spec() const override { return inner_->spec(); }
  backend::BufferPtr allocate(size_t bytes) override {
    ++allocations;
    if (*used + bytes > 1 << 20) throw Error(Code::kOutOfMemory, "no room");
    *used += bytes;
    backend::BufferPtr buffer = inner_->allocate(bytes);
    return {buffer.get(), [buffer, used = used, bytes](backend::Buffer*) { *used -= bytes; }};
  }
  backend::BufferPtr wrap(void*, size_t) override { return nullptr; }
  std::unique_ptr<backend::Stream> make_stream(void*) override { return nullptr; }
  backend::ProgramPtr load(const artifact::KernelBinary&, const std::vector<std::string>&) override {
    return nullptr;
  }
  backend::Compiler* compiler() override { return nullptr; }
  int64_t free_memory_bytes() override { return -1; }
  int allocations = 0;
  std::shared_ptr<size_t> used = std::make_shared<size_t>(0);

 private:
  backend::DevicePtr inner_ = null_device();
};

TEST(BufferPool, LendsEachBufferOnceAndTakesItBack) {
  const auto device = std::make_shared<SmallDevice>();
  BufferPool pool(device);
  void* first = nullptr;
  {
    const auto a = pool.take(1000), b = pool.take(1000);
    EXPECT_NE(a.buffer->native(), b.buffer->native());
    EXPECT_GE(a.buffer->bytes(), 1000u);
    EXPECT_EQ(a.bytes, 1000u);
    first = a.buffer->native();
  }
  const auto c = pool.take(900), d = pool.take(901);
  EXPECT_TRUE(c.buffer->native() == first || d.buffer->native() == first);
  EXPECT_NE(c.buffer->native(), d.buffer->native());
  EXPECT_EQ(device->allocations, 2);
  EXPECT_EQ(pool.peak_bytes(), 2048);
}

TEST(BufferPool, IdleBuffersMakeRoomAndAFailureIsForgotten) {
  const auto device = std::make_shared<SmallDevice>();
  BufferPool pool(device);
  pool.take(600 << 10);  // comes back at once and lies idle
  const auto larger = pool.take(700 << 10);
  EXPECT_TRUE(larger.buffer);
  const int64_t peak = pool.peak_bytes();
  EXPECT_EQ(error_of([&] { pool.take(400 << 10); }).first, Code::kOutOfMemory);
  EXPECT_NO_THROW(pool.take(100 << 10));
  EXPECT_LE(pool.peak_bytes(), peak + (400 << 10) + 4096);
}

TEST(BufferPool, BuffersMayOutliveThePool) {
  const auto device = std::make_shared<SmallDevice>();
  backend::BufferSpan kept;
  {
    BufferPool pool(device);
    kept = pool.take(5000);
  }
  std::memset(kept.buffer->native(), 1, 5000);
  kept = {};
  EXPECT_EQ(*device->used, 0u);
}

}  // namespace
}  // namespace thrice::exec
