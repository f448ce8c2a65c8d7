// Runs workloads through a family's kernels on a device (THRICE_TEST_DEVICE, else "opencl:0") and compares
// them with the float64 interpreter.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cross/cuda_text.h"
#include "family/family.h"
#include "family/prelude.h"
#include "ir/check.h"
#include "ir/compare.h"
#include "ir/evaluate.h"
#include "ir/inputs.h"

namespace thrice::testing {

// Builds small graphs; every node is added with one origin, and inference runs at workload().
class Builder {
 public:
  Builder() { graph_.origins.push_back({"Test", "test", 0}); }
  ir::ValueId input(DType dtype, ir::Shape shape) {
    const ir::ValueId v = graph_.add_value({dtype, std::move(shape)});
    graph_.inputs.push_back(v);
    graph_.input_names.push_back(fmt::format("x{}", graph_.inputs.size()));
    return v;
  }
  ir::ValueId f32(ir::Shape shape) { return input(DType::kF32, std::move(shape)); }
  ir::ValueId constant(ir::Tensor t) { return graph_.add_constant(std::move(t)); }
  ir::ValueId ints(std::vector<int64_t> values) { return constant(ir::Tensor::ints(std::move(values))); }
  ir::ValueId scalar(double value, DType dtype = DType::kF32) {
    return constant(ir::Tensor::scalar(dtype, value));
  }
  ir::ValueId op(ir::Op op, std::vector<ir::ValueId> inputs, ir::Attributes attrs = {}) {
    return ops(op, std::move(inputs), std::move(attrs), 1)[0];
  }
  std::vector<ir::ValueId> ops(ir::Op op, std::vector<ir::ValueId> inputs, ir::Attributes attrs,
                               size_t outputs) {
    ir::Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    node.origin = 0;
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph_.add_value({}));
    const std::vector<ir::ValueId> results = node.outputs;
    graph_.add_node(std::move(node));
    return results;
  }
  void output(ir::ValueId v) {
    graph_.outputs.push_back(v);
    graph_.output_names.push_back(fmt::format("y{}", graph_.outputs.size()));
  }
  ir::Workload workload() {
    ir::infer_graph(graph_);
    std::vector<ir::NodeId> nodes;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) nodes.push_back(static_cast<ir::NodeId>(n));
    return ir::extract(graph_, ir::make_region(graph_, nodes));
  }
  ir::Graph& graph() { return graph_; }

 private:
  ir::Graph graph_;
};

class FamilyRunner {
 public:
  static FamilyRunner& instance() {
    static FamilyRunner one;
    return one;
  }
  bool available() const { return device_ != nullptr; }
  std::string text_before;  // of every program: definitions that choose among parts of a kernel
  const std::string& reason() const { return reason_; }
  const target::DeviceSpec& spec() const { return device_->spec(); }

  static std::vector<ir::Fact> facts_of(const std::vector<ir::Tensor>& inputs) {
    std::vector<ir::Fact> facts;
    for (const auto& t : inputs) {
      ir::Fact fact;
      fact.type = {t.dtype(), ir::to_shape(t.shape())};
      fact.constant = &t;
      facts.push_back(fact);
    }
    return facts;
  }

  std::vector<ir::Tensor> run(const ir::Workload& w, const family::Family& f,
                              const artifact::Schedule& schedule, const std::vector<ir::Tensor>& inputs) {
    const auto facts = facts_of(inputs);
    const family::ProgramText text = f.emit(w, schedule, spec());
    const auto program = build(text);
    const artifact::LaunchPlan plan = f.launch(w, schedule, facts);
    const std::vector<ir::Fact> bound = ir::bind(w.graph, facts);
    std::vector<backend::BufferSpan> buffers;
    const auto allocate = [&](size_t bytes) {
      const size_t size =
          (std::max<size_t>(bytes, 1) + backend::kAlignment - 1) / backend::kAlignment * backend::kAlignment;
      // Where the device offers it, a read or write behind a buffer faults.
      backend::BufferPtr buffer = device_->allocate_fenced(std::max<size_t>(bytes, 1));
      if (!buffer) buffer = device_->allocate(size);
      buffers.push_back({std::move(buffer), 0, bytes});
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (ir::is_shape_input(w, i)) continue;
      allocate(inputs[i].bytes());
      if (inputs[i].bytes() > 0)
        stream_->copy_to_device(buffers.back(), {inputs[i].data(), inputs[i].bytes()});
    }
    const size_t first_output = buffers.size();
    std::vector<ir::Tensor> outputs;
    for (const ir::ValueId v : w.graph.outputs) {
      const ir::Type& type = bound[static_cast<size_t>(v)].type;
      outputs.emplace_back(type.dtype, ir::static_shape(type.shape));
      allocate(outputs.back().bytes());
      // Elements that are never written must not pass by luck.
      if (outputs.back().bytes() > 0) stream_->fill(buffers.back(), std::byte{0xff});
    }
    for (const int64_t bytes : plan.temporary_bytes) allocate(static_cast<size_t>(bytes));
    // What a family says a kernel does not touch is not given to it: there it would fault.
    const std::vector<family::KernelUse> uses = f.uses(w, schedule);
    for (const auto& launch : plan.launches) {
      if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) continue;
      std::vector<backend::BufferSpan> given = buffers;
      for (size_t b = 0; b < given.size() && !uses.empty(); ++b)
        if (!uses[static_cast<size_t>(launch.kernel)].touches[b]) given[b] = {};
      const size_t bytes = std::max<size_t>(launch.extents.size(), 1) * sizeof(int32_t);
      const backend::BufferSpan extents{device_->allocate((bytes + 255) / 256 * 256), 0, bytes};
      if (!launch.extents.empty())
        stream_->copy_to_device(extents, std::as_bytes(std::span<const int32_t>(launch.extents)));
      stream_->launch({program, launch, given, extents});
    }
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o].bytes() > 0)
        stream_->copy_to_host({outputs[o].mutable_data(), outputs[o].bytes()}, buffers[first_output + o]);
    stream_->synchronize();
    return outputs;
  }

  // Runs kernel `which` of a program alone on buffers that are tensors, and a last one of no bytes: the
  // workspace that kernels of ours do not touch.
  void run_kernel(const family::ProgramText& text, size_t which, artifact::Launch launch,
                  std::vector<ir::Tensor>& tensors) {
    if (launch.grid[0] == 0) return;
    const auto program = build({text.text, {text.kernels[which]}});
    launch.kernel = 0;
    std::vector<backend::BufferSpan> buffers;
    for (const ir::Tensor& t : tensors) {
      buffers.push_back({device_->allocate(std::max<size_t>(t.bytes(), 1)), 0, t.bytes()});
      if (t.bytes() > 0) stream_->copy_to_device(buffers.back(), {t.data(), t.bytes()});
    }
    buffers.push_back({device_->allocate(backend::kAlignment), 0, 0});
    const auto bytes = std::max<size_t>(launch.extents.size(), 1) * sizeof(int32_t);
    const backend::BufferSpan extents{device_->allocate(bytes), 0, bytes};
    if (!launch.extents.empty())
      stream_->copy_to_device(extents, std::as_bytes(std::span<const int32_t>(launch.extents)));
    stream_->launch({program, launch, buffers, extents});
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].bytes() > 0)
        stream_->copy_to_host({tensors[i].mutable_data(), tensors[i].bytes()}, buffers[i]);
  }

  // Compares one schedule with the interpreter on the given inputs. `limit` < 0: error_limit of the dtype.
  void check(const ir::Workload& w, const family::Family& f, const artifact::Schedule& schedule,
             const std::vector<ir::Tensor>& inputs, double limit = -1) {
    SCOPED_TRACE(schedule.str() + "\n" + ir::print(w.graph));
    const auto refusal = f.illegal(w, schedule, spec());
    ASSERT_FALSE(refusal.has_value()) << *refusal;
    std::vector<ir::Tensor> results;
    try {
      results = run(w, f, schedule, inputs);
    } catch (const Error& error) {
      FAIL() << error.what() << "\n" << f.emit(w, schedule, spec()).text;
    }
    std::vector<ir::ArrayPtr> arrays;
    for (const auto& t : inputs) arrays.push_back(ir::to_array(t));
    const auto reference = ir::evaluate_graph(w.graph, arrays);
    for (size_t o = 0; o < results.size(); ++o) {
      ASSERT_EQ(results[o].shape(), reference[o]->shape);
      const ir::Comparison c = ir::compare(results[o], *reference[o],
                                           limit >= 0 ? limit : ir::error_limit(results[o].dtype(), -1));
      // Where no element is finite the classes were compared, and there is no norm to speak of.
      const bool only_classes = c.compared == 0 && c.worst_index < 0;
      EXPECT_TRUE(c.ok || only_classes) << "output " << o << ": " << c.reason << "\nat " << c.worst_index
                                        << ": " << c.worst_value << " for " << c.worst_reference << "\n"
                                        << f.emit(w, schedule, spec()).text;
    }
  }

  // The default and every tactic's first, middle and last legal schedule, at each binding, with normal
  // inputs.
  void check_all(const ir::Workload& w, const family::Family& f, const std::vector<ir::Bindings>& bindings,
                 ir::InputKind kind = ir::InputKind::kNormal, double limit = -1) {
    const auto refusal = f.match(w);
    ASSERT_FALSE(refusal.has_value()) << *refusal << "\n" << ir::print(w.graph);
    const auto facts = ir::facts_at(w.graph, bindings[0]);
    std::vector<artifact::Schedule> schedules{f.default_schedule(w, facts, spec())};
    for (const auto& tactic : f.space(w, facts, spec()).tactics) {
      for (const double place : {0.0, 0.5, 1.0}) {
        artifact::Schedule s{tactic.family, tactic.tactic, {}};
        for (const auto& p : tactic.parameters)
          s.values.emplace_back(
              p.name, p.choices[static_cast<size_t>(place * static_cast<double>(p.choices.size() - 1))]);
        if (!f.illegal(w, s, spec()) && std::find(schedules.begin(), schedules.end(), s) == schedules.end())
          schedules.push_back(s);
      }
    }
    keep_cuda(w, f, facts);
    for (const auto& s : schedules) {
      uint64_t seed = 1;
      for (const auto& b : bindings) {
        SCOPED_TRACE(bindings_text(b));
        check(w, f, s, ir::make_inputs(w.graph, b, kind, seed++), limit);
        if (::testing::Test::HasFatalFailure() || ::testing::Test::HasNonfatalFailure()) return;
      }
    }
  }

  // Keeps what a card would run of this workload as CUDA C++: its default and one legal schedule of each
  // tactic. The step cuda_texts compiles each text for every architecture, for older cards than the schedule
  // was chosen for too: a release holds one text for all its architectures.
  void keep_cuda(const ir::Workload& w, const family::Family& f, const std::vector<ir::Fact>& facts) {
    const target::DeviceSpec card = gpu_spec("sm_90a");
    std::vector<artifact::Schedule> schedules{f.default_schedule(w, facts, card)};
    std::mt19937_64 random(std::hash<std::string>{}(w.hash));  // other parameters for each workload
    for (const auto& tactic : f.space(w, facts, card).tactics)
      for (int trial = 0; trial < 200; ++trial) {
        artifact::Schedule s{tactic.family, tactic.tactic, {}};
        for (const auto& p : tactic.parameters)
          s.values.emplace_back(p.name, p.choices[random() % p.choices.size()]);
        if (f.illegal(w, s, card)) continue;
        schedules.push_back(s);
        break;
      }
    for (const auto& s : schedules) {
      const std::string text = f.emit(w, s, card).text;
      if (cuda_kept_.insert(text).second) keep_cuda_text(s.str(), text);
    }
  }

  // A card of that architecture, as far as families ask.
  static target::DeviceSpec gpu_spec(const std::string& architecture) {
    target::DeviceSpec gpu;
    gpu.api = target::Api::kCuda;
    gpu.architecture = architecture;
    gpu.compute_units = 132;
    gpu.optin_shared_bytes = (architecture == "sm_90a" ? 227 : 99) * 1024;
    gpu.has_f64 = gpu.has_f16_arithmetic = gpu.has_int64_atomics = true;
    gpu.max_alloc_bytes = gpu.memory_bytes = int64_t{16} << 30;
    gpu.cublaslt = "13.1.0";
    gpu.cudnn = "9.10.2";
    return gpu;
  }

  static std::string bindings_text(const ir::Bindings& b) {
    std::string text;
    for (const auto& [name, value] : b) text += fmt::format("{}={} ", name, value);
    return text;
  }

 private:
  FamilyRunner() {
    try {
      const char* id = std::getenv("THRICE_TEST_DEVICE");
      device_ = backend::open_device(id != nullptr ? id : "opencl:0");
      stream_ = device_->make_stream();
    } catch (const Error& error) {
      reason_ = error.what();
    }
  }
  backend::ProgramPtr build(const family::ProgramText& text) {
    artifact::KernelSource source;
    source.language =
        spec().api == target::Api::kCuda ? artifact::Language::kCuda : artifact::Language::kOpenCL;
    source.text = text_before + family::prelude(source.language) + text.text;
    source.kernels = text.kernels;
    source.key = fmt::format("{:x}", std::hash<std::string>{}(source.text));
    std::string key = source.text;
    for (const std::string& kernel : source.kernels) key += kernel;
    auto& program = programs_[key];
    if (!program) program = device_->load(device_->compiler()->compile(source), source.kernels);
    return program;
  }
  std::string reason_;
  backend::DevicePtr device_;
  std::unique_ptr<backend::Stream> stream_;
  std::map<std::string, backend::ProgramPtr> programs_;
  std::set<std::string> cuda_kept_;
};

// Skips the test with a reason where there is no OpenCL device.
#define THRICE_REQUIRE_OPENCL()                                 \
  if (!::thrice::testing::FamilyRunner::instance().available()) \
  GTEST_SKIP() << "no OpenCL device: " << ::thrice::testing::FamilyRunner::instance().reason()

}  // namespace thrice::testing
