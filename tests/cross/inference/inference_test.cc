// Catches: an extent or a known value that symbolic inference claims and evaluation contradicts, on whole
// models: every case and small net of tests/data, and every *.onnx below the folders of THRICE_MODEL_FOLDERS
// (colon-separated; the ONNX node tests, for instance). Each model runs at two bindings of its symbols.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "frontend/import.h"
#include "ir/check.h"
#include "ir/evaluate.h"
#include "ir/infer.h"
#include "ir/inputs.h"
#include "ir/serialize.h"

namespace thrice {
namespace {

constexpr int64_t kMostElements = 1 << 22;  // of inputs; larger ones are run elsewhere
// Weights of a model that is evaluated; THRICE_LARGE_MODELS=1 lifts it (a minute of processor time for
// tests/data).
constexpr int64_t kMostWeights = 1 << 23;

struct Counts {
  int models = 0, refused = 0, not_run = 0, wrong = 0;
  int64_t extents = 0, known = 0;
};

bool bound(const ir::Dim& d, const ir::Bindings& b) {
  for (const std::string& s : d.symbols())
    if (!b.count(s)) return false;
  return true;
}

// Compares one result with what inference said; new lone symbols are bound by what is seen.
void compare(const ir::Value& value, const ir::Array& array, ir::Bindings& bindings, const std::string& where,
             Counts& counts) {
  const auto wrong = [&](const std::string& what) {
    ADD_FAILURE() << where << ": " << what << "; inferred " << ir::shape_str(value.type.shape)
                  << " evaluated " << ir::shape_str(ir::to_shape(array.shape));
    ++counts.wrong;
  };
  if (value.type.dtype != array.dtype) return wrong("element type");
  if (value.type.shape.size() != array.shape.size()) return wrong("rank");
  for (size_t a = 0; a < array.shape.size(); ++a) {
    const ir::Dim& d = value.type.shape[a];
    if (!bound(d, bindings)) {
      if (d == ir::Dim::symbol(d.str())) bindings[d.str()] = array.shape[a];
      continue;
    }
    ++counts.extents;
    if (d.evaluate(bindings) != array.shape[a]) return wrong("extent of axis " + std::to_string(a));
  }
  if (!value.known || array.i.size() != value.known->size()) {
    if (value.known && !array.s.size()) wrong("number of known elements");
    return;
  }
  for (size_t i = 0; i < array.i.size(); ++i) {
    if (!bound((*value.known)[i], bindings)) continue;
    ++counts.known;
    if ((*value.known)[i].evaluate(bindings) != array.i[i])
      return wrong("known element " + std::to_string(i) + " = " + (*value.known)[i].str() + ", evaluated " +
                   std::to_string(array.i[i]));
  }
}

void run_at(const ir::Graph& graph, ir::Bindings bindings, const std::string& name, Counts& counts) {
  std::vector<ir::ArrayPtr> inputs;
  try {
    int64_t elements = 0;
    for (ir::ValueId id : graph.inputs)
      elements += ir::num_elements(graph.value(id).type.shape).evaluate(bindings);
    if (elements > kMostElements) {
      ++counts.not_run;
      return;
    }
    for (const ir::Tensor& t : ir::make_inputs(graph, bindings, ir::InputKind::kSmallIntegers, 1))
      inputs.push_back(ir::to_array(t));
  } catch (const Error&) {
    ++counts.not_run;  // no binding fits, or an input that cannot be made up
    return;
  }
  // A length that the model does not have: shorter than a window, which leaves nothing, or less. (ONNX's
  // Reshape reads an extent of 0 as "copy", so an empty length may mean another shape.)
  for (const ir::Value& value : graph.values)
    for (const ir::Dim& d : value.type.shape)
      if (!d.is_const() && bound(d, bindings) && d.evaluate(bindings) < 1) {
        ++counts.not_run;
        return;
      }
  ir::EvaluateOptions options;
  options.observe = [&](const ir::Node& node, const std::vector<ir::ArrayPtr>& results) {
    // Bodies' nodes are seen too; their symbols have a value an iteration, so they are left out.
    if (&node < graph.nodes.data() || &node >= graph.nodes.data() + graph.nodes.size()) return;
    for (size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != ir::kNoValue && results[o])
        compare(graph.value(node.outputs[o]), *results[o], bindings,
                name + " node " + std::to_string(&node - graph.nodes.data()) + " " +
                    std::string(op_name(node.op)),
                counts);
  };
  try {
    evaluate_graph(graph, inputs, options);
  } catch (const Error& error) {
    ++counts.not_run;  // made-up inputs that the model does not allow
    if (std::getenv("THRICE_VERBOSE")) std::cout << name << ": not run: " << error.what() << "\n";
  }
}

void check_model(const std::string& path, Counts& counts) {
  ++counts.models;
  ir::Graph graph;
  try {
    frontend::ImportOptions options;
    options.random_weights = true;
    graph = frontend::import_model(path, options);
  } catch (const Error& error) {
    ++counts.refused;
    EXPECT_NE(error.code(), Code::kInternal) << path << ": " << error.what();
    if (std::getenv("THRICE_VERBOSE")) std::cout << path << ": " << error.what() << "\n";
    return;
  }
  try {
    ir::verify(graph);
    const ir::SerializedGraph stored = ir::serialize(graph);
    const ir::Graph back = ir::deserialize(stored.json, stored.constants);
    EXPECT_EQ(ir::structural_hash(back), ir::structural_hash(graph)) << path;
    const std::string before = ir::print(graph);
    ir::infer_graph(graph);
    EXPECT_EQ(ir::print(graph), before) << path << ": inference is not idempotent";
  } catch (const Error& error) {
    ADD_FAILURE() << path << ": " << error.what();
    return;
  }
  int64_t weights = 0;
  for (const ir::Value& v : graph.values)
    if (v.constant) weights += v.constant->size();
  if (weights > kMostWeights && !std::getenv("THRICE_LARGE_MODELS")) {
    ++counts.not_run;
    return;
  }
  std::set<std::string> symbols;
  for (ir::ValueId id : graph.inputs)
    for (const ir::Dim& d : graph.value(id).type.shape) symbols.merge(d.symbols());
  for (int64_t first : {3, 1}) {
    ir::Bindings bindings;
    int64_t next = first;
    for (const std::string& s : symbols) bindings[s] = next++;
    run_at(graph, bindings, path, counts);
    if (symbols.empty()) break;
  }
}

TEST(Inference, AgreesWithEvaluationOnWholeModels) {
  std::vector<std::string> folders{std::string(THRICE_DATA_DIR)};
  if (const char* more = std::getenv("THRICE_MODEL_FOLDERS")) {
    std::istringstream list(more);
    for (std::string f; std::getline(list, f, ':');) folders.push_back(f);
  }
  Counts counts;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(folder)) continue;
    std::vector<std::string> models;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".onnx" && entry.file_size() < (4u << 20))
        models.push_back(entry.path().string());
    std::sort(models.begin(), models.end());
    for (const std::string& m : models) check_model(m, counts);
  }
  std::cout << counts.models << " models, " << counts.refused << " refused, " << counts.not_run
            << " runs left out; " << counts.extents << " extents and " << counts.known
            << " known values compared, " << counts.wrong << " wrong\n";
  if (counts.models == 0) GTEST_SKIP() << "no models: tools/unpack_data.sh has not filled " << folders[0];
  EXPECT_GT(counts.extents, 0);
}

}  // namespace
}  // namespace thrice
