// ONNX node tests on the float64 interpreter and on a device, through the whole path of a model: import,
// transforms, plan, kernels, executor. Prints one JSON object a test: {"name", "interpreter": {"word",
// "reason"}, "device": {...}}; word is pass | wrong | refused | random | error.
//   run_node_tests [--device opencl:0] [--planner original] [--in-place] [--shard 0/2] [--cache FOLDER]
//   FOLDER...
// FOLDERs hold tests (model.onnx, test_data_set_*). A test whose structure hangs on an operand (axes as a
// run-time input) is imported again with its small operands fixed, as --const does: its reason says so.
// --in-place: each test runs a second time with results in the storage of operands where the plan allows it,
// and every bit must be the same; those where something is shared say so ("in_place": regions).
// Catches a decomposition, a kernel or a plan that computes something else than the operator.
// tools/conformance.py runs it and writes the tables.
#include <fmt/format.h>
#include <onnx_subset.pb.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "backend/backend.h"
#include "exec/executor.h"
#include "exec/in_place.h"
#include "flow/build.h"
#include "frontend/import.h"
#include "frontend/onnx/tensor_decode.h"
#include "ir/compare.h"
#include "ir/evaluate.h"
#include "plan/planner.h"
#include "transform/transform.h"

namespace fs = std::filesystem;
namespace ir = thrice::ir;

namespace {

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Unreadable {};  // a data file that holds something else than a tensor

ir::Tensor read_tensor(const fs::path& path) {
  thrice::onnx_format::TensorProto proto;
  if (!proto.ParseFromString(read_file(path))) throw Unreadable{};
  thrice::frontend::onnx::ExternalData external("");
  return thrice::frontend::onnx::decode_tensor(proto, external, path.string()).tensor;
}

std::vector<ir::Tensor> read_tensors(const fs::path& folder, const std::string& kind) {
  std::vector<ir::Tensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(path)) return tensors;
    tensors.push_back(read_tensor(path));
  }
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

// Older tests hold bfloat16 as 16-bit integers.
ir::Tensor as_declared(const ir::Tensor& tensor, thrice::DType declared) {
  if (declared != thrice::DType::kBF16 || tensor.dtype() != thrice::DType::kU16) return tensor;
  ir::Tensor bits(declared, tensor.shape());
  std::copy(tensor.data(), tensor.data() + tensor.bytes(), bits.mutable_data());
  return bits;
}

struct Verdict {
  std::string word, reason;
};

// Names of the model's inputs, in the order of the data files.
std::vector<std::string> input_names(const fs::path& model) {
  thrice::onnx_format::ModelProto proto;
  if (!proto.ParseFromString(read_file(model))) throw Unreadable{};
  std::vector<std::string> names;
  for (const auto& input : proto.graph().input()) {
    if (!input.type().has_tensor_type()) throw Unreadable{};
    names.push_back(input.name());
  }
  for (const auto& output : proto.graph().output())
    if (!output.type().has_tensor_type()) throw Unreadable{};
  return names;
}

// How an input's data contradicts the shape that the model itself declares for it; empty: nowhere.
std::string contradiction(const fs::path& model, const fs::path& set) {
  thrice::onnx_format::ModelProto proto;
  if (!proto.ParseFromString(read_file(model))) return "";
  const std::vector<ir::Tensor> given = read_tensors(set, "input");
  for (size_t i = 0; i < given.size() && i < static_cast<size_t>(proto.graph().input_size()); ++i) {
    const auto& input = proto.graph().input(static_cast<int>(i));
    if (!input.type().tensor_type().has_shape()) continue;
    const auto& dims = input.type().tensor_type().shape().dim();
    bool same = static_cast<size_t>(dims.size()) == given[i].shape().size();
    for (int axis = 0; same && axis < dims.size(); ++axis)
      same = !dims[axis].has_dim_value() ||
             dims[axis].dim_value() == given[i].shape()[static_cast<size_t>(axis)];
    if (!same)
      return fmt::format("the data of input '{}' has shape {}, the model declares another", input.name(),
                         shape_text(given[i].shape()));
  }
  return "";
}

bool draws_random_numbers(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) {
    return node.op == ir::Op::random ||
           std::any_of(node.bodies.begin(), node.bodies.end(),
                       [](const auto& body) { return draws_random_numbers(*body); });
  });
}

// The expected values were computed in their own type: a few units in the last place of the largest one.
double rounding_of(const ir::Tensor& expected) {
  const thrice::DType dtype = expected.dtype();
  if (!thrice::is_float(dtype) || dtype == thrice::DType::kF64) return 0;
  const int digits = dtype == thrice::DType::kBF16 ? 8 : dtype == thrice::DType::kF16 ? 11 : 24;
  double largest = 0;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (std::isfinite(expected.as_double(i))) largest = std::max(largest, std::fabs(expected.as_double(i)));
  return 4 * std::ldexp(largest, -digits);
}

// What a test is run on; null device = the interpreter.
struct Engine {
  thrice::backend::DevicePtr device;
  std::shared_ptr<thrice::jit::KernelCache> cache;
  std::string planner = "greedy";
  size_t* in_place = nullptr;  // counts regions that ran in place too; null: none does
};

bool same_bits(const ir::Tensor& a, const ir::Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.dtype() != thrice::DType::kString &&
         std::equal(a.data(), a.data() + a.bytes(), b.data());
}

std::vector<ir::Tensor> run_graph(const Engine& engine, const std::shared_ptr<ir::Graph>& graph,
                                  const std::vector<ir::Tensor>& inputs) {
  if (!engine.device) {
    std::vector<ir::ArrayPtr> arrays;
    for (const ir::Tensor& t : inputs) arrays.push_back(ir::to_array(t));
    std::vector<ir::Tensor> results;
    for (const ir::ArrayPtr& result : ir::evaluate_graph(*graph, arrays))
      results.push_back(ir::to_tensor(*result));
    return results;
  }
  if (engine.planner != "original") thrice::transform::run_transforms(*graph, {});
  thrice::plan::PlanOptions options;
  options.planner = engine.planner;
  auto plan = std::make_shared<thrice::artifact::Plan>(
      thrice::plan::make_plan(*graph, engine.device->spec(), options).plan);
  thrice::exec::Executor executor(thrice::exec::make_executable(
      engine.device, graph, plan, thrice::flow::program_source(engine.device, engine.cache, nullptr)));
  std::vector<ir::Tensor> results = executor.run_host(inputs);
  if (engine.in_place == nullptr) return results;
  auto shared = std::make_shared<thrice::artifact::Plan>(*plan);
  const auto schedules = thrice::exec::in_place_schedules(graph, *plan, {});
  if (schedules.empty()) return results;
  *engine.in_place += schedules.size();
  thrice::exec::set_schedules(*shared, schedules);
  thrice::exec::Executor other(thrice::exec::make_executable(
      engine.device, graph, shared, thrice::flow::program_source(engine.device, engine.cache, nullptr)));
  const std::vector<ir::Tensor> again = other.run_host(inputs);
  if (!std::equal(results.begin(), results.end(), again.begin(), again.end(), same_bits))
    throw thrice::Error(thrice::Code::kWrongResult, "in place the results are others");
  return results;
}

Verdict run_set(const Engine& engine, const fs::path& model, const fs::path& set, bool fixed) {
  const std::vector<std::string> names = input_names(model);
  const std::vector<ir::Tensor> given = read_tensors(set, "input");
  std::vector<ir::Tensor> expected = read_tensors(set, "output");
  std::map<std::string, ir::Tensor> feeds;
  for (size_t i = 0; i < given.size() && i < names.size(); ++i) feeds[names[i]] = given[i];
  thrice::frontend::ImportOptions options;
  options.allow_slow = !engine.device;  // the interpreter is the host
  if (fixed)
    for (const auto& [name, tensor] : feeds)
      if (tensor.dtype() != thrice::DType::kString && tensor.size() <= ir::kMaxKnown &&
          tensor.shape().size() <= 1)
        options.known_inputs[name] = tensor;
  const auto graph = std::make_shared<ir::Graph>(thrice::frontend::import_model(model.string(), options));
  std::vector<ir::Tensor> inputs;
  for (size_t i = 0; i < graph->inputs.size(); ++i)
    inputs.push_back(as_declared(feeds.at(graph->input_names[i]), graph->value(graph->inputs[i]).type.dtype));
  const bool random = draws_random_numbers(*graph);
  const std::vector<ir::Tensor> results = run_graph(engine, graph, inputs);
  if (results.size() != expected.size())
    return {"wrong", fmt::format("{} results, {} expected", results.size(), expected.size())};
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::Tensor& y = results[i];
    expected[i] = as_declared(expected[i], y.dtype());
    if (y.dtype() != expected[i].dtype())
      return {"wrong", fmt::format("output {} is {}, expected {}", i, thrice::dtype_name(y.dtype()),
                                   thrice::dtype_name(expected[i].dtype()))};
    if (y.shape() != expected[i].shape())
      return {"wrong", fmt::format("output {} has shape {}, expected {}", i, shape_text(y.shape()),
                                   shape_text(expected[i].shape()))};
    if (random) continue;
    const ir::Comparison c = ir::compare_onnx(y, expected[i], 1e-3, 1e-7 + rounding_of(expected[i]));
    if (!c.ok)
      return {"wrong", fmt::format("output {}: {} at {}: {} instead of {}", i, c.reason, c.worst_index,
                                   c.worst_value, c.worst_reference)};
  }
  return {random ? "random" : "pass", fixed ? "with its small operands fixed at import" : ""};
}

// Tests whose data contradict their own model.
const std::map<std::string, std::string> kFaulty = {
    {"test_adam_multiple",
     "computed with epsilon 1e-2, which opset 17's model does not give; put right later"}};

Verdict run_test(const Engine& engine, const fs::path& test) {
  Verdict last{"error", "no data set"};
  for (const auto& entry : fs::directory_iterator(test)) {
    if (entry.path().filename().string().rfind("test_data_set_", 0) != 0) continue;
    for (const bool fixed : {false, true}) {
      try {
        last = run_set(engine, test / "model.onnx", entry.path(), fixed);
      } catch (const thrice::Error& error) {
        last = {error.code() == thrice::Code::kUnsupported ? "refused" : "error",
                fmt::format("{}: {}", thrice::code_name(error.code()), error.what())};
      } catch (const Unreadable&) {
        last = {"refused", "the data are not tensors"};
      } catch (const std::exception& error) {
        last = {"error", error.what()};
      }
      if (last.word != "refused") break;
    }
    if (last.word == "error")
      if (const std::string why = contradiction(test / "model.onnx", entry.path()); !why.empty())
        last = {"faulty", why};
    if (last.word != "pass") break;
  }
  const auto faulty = kFaulty.find(test.filename().string());
  if (last.word == "wrong" && faulty != kFaulty.end()) return {"faulty", faulty->second};
  return last;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> tests;
  std::string device, cache, planner = "greedy";
  size_t shard = 0, shards = 1, num_shared = 0;
  bool in_place = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (arg == "--device")
      device = value();
    else if (arg == "--cache")
      cache = value();
    else if (arg == "--planner")
      planner = value();
    else if (arg == "--in-place")
      in_place = true;
    else if (arg == "--shard") {
      const std::string text = value();
      shard = std::stoul(text);
      shards = std::stoul(text.substr(text.find('/') + 1));
    } else if (fs::exists(fs::path(arg) / "model.onnx"))
      tests.emplace_back(arg);
    else if (fs::is_directory(arg)) {
      for (const auto& entry : fs::directory_iterator(arg))
        if (fs::exists(entry.path() / "model.onnx")) tests.push_back(entry.path());
    }
  }
  if (tests.empty()) {
    fmt::print(stderr,
               "usage: run_node_tests [--device ID] [--planner NAME] [--in-place] [--shard I/N] [--cache "
               "FOLDER] FOLDER...\n");
    return 2;
  }
  std::sort(tests.begin(), tests.end());
  Engine interpreter, on_device;
  if (!device.empty()) {
    on_device.device = thrice::backend::open_device(device);
    on_device.cache = std::make_shared<thrice::jit::KernelCache>(on_device.device, cache);
    on_device.planner = planner;
    if (in_place) on_device.in_place = &num_shared;
  }
  for (size_t t = shard; t < tests.size(); t += shards) {
    nlohmann::json row = {{"name", tests[t].filename().string()}};
    const auto put = [&](const char* where, const Verdict& v) {
      row[where] = {{"word", v.word}, {"reason", v.reason}};
    };
    put("interpreter", run_test(interpreter, tests[t]));
    num_shared = 0;
    if (on_device.device) put("device", run_test(on_device, tests[t]));
    if (num_shared > 0) row["in_place"] = num_shared;
    fmt::print("{}\n", row.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    std::fflush(stdout);
  }
  return 0;
}
