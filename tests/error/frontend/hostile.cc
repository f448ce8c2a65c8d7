// Hostile and damaged model files: each must end in its own clear error, quickly, and never in a crash or a
// wrong graph.
#include <gtest/gtest.h>
#include <thrice/status.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "frontend/import.h"
#include "frontend/onnx/decode.h"
#include "unit/frontend/model_writer.h"

namespace thrice::frontend {
namespace {

using namespace thrice::tests;
namespace fs = std::filesystem;

struct Outcome {
  Code code = Code::kOk;
  std::string message;
};

Outcome import(const std::string& file, const std::string& folder = "", const ImportOptions& options = {}) {
  try {
    import_model_bytes(std::as_bytes(std::span(file)), folder, options);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

void expect(const Outcome& outcome, Code code, const std::string& part) {
  EXPECT_EQ(code_name(outcome.code), std::string(code_name(code))) << outcome.message;
  EXPECT_NE(outcome.message.find(part), std::string::npos) << outcome.message;
}

GraphParts small() {
  return {{node("Add", {"x", "w"}, {"y"})},
          {floats("w", {2}, {1, 2})},
          {value("x", 1, {"n", "2"})},
          {value("y", 1, {"n", "2"})}};
}

TEST(Hostile, EveryTruncationEndsInAnError) {
  const std::string whole = model(small());
  ASSERT_EQ(import(whole).code, Code::kOk) << import(whole).message;
  for (size_t length = 0; length < whole.size(); ++length) {
    const Outcome outcome = import(whole.substr(0, length));
    EXPECT_NE(outcome.code, Code::kInternal) << length << ": " << outcome.message;
    EXPECT_NE(outcome.code, Code::kOk) << length;
  }
}

TEST(Hostile, RandomBytesAndFlippedBits) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string file(random() % 200, '\0');
    for (char& c : file) c = static_cast<char>(random());
    EXPECT_NE(import(file).code, Code::kInternal);
  }
  const std::string whole = model(small());
  for (size_t i = 0; i < whole.size() * 8; ++i) {
    std::string file = whole;
    file[i / 8] = static_cast<char>(file[i / 8] ^ (1 << (i % 8)));
    const Outcome outcome = import(file);
    EXPECT_NE(outcome.code, Code::kInternal) << i << ": " << outcome.message;
  }
}

TEST(Hostile, SizesThatDoNotFit) {
  GraphParts parts = small();
  parts.initializers = {tensor("w", 1, {3}, "abc")};
  expect(import(model(parts)), Code::kInvalidModel, "'w'");
  parts.initializers = {tensor("w", 1, {int64_t{1} << 62, 8}, "")};
  expect(import(model(parts)), Code::kInvalidModel, "'w'");
  parts.initializers = {tensor("w", 1, {-1}, "")};
  expect(import(model(parts)), Code::kInvalidModel, "'w'");
  parts.initializers = {tensor("w", 99, {1}, "abcd")};
  expect(import(model(parts)), Code::kInvalidModel, "99 is no element type");
  // A length in front of the bytes that lies about them.
  expect(import(text(7, "x").substr(0, 1) + std::string("\xff\xff\xff\xff\x07", 5)), Code::kInvalidModel,
         "protobuf");
}

TEST(Hostile, AbsurdDimensions) {
  GraphParts parts = small();
  parts.inputs = {value("x", 1, {"9223372036854775807", "9223372036854775807", "2"})};
  const Outcome outcome = import(model(parts));
  EXPECT_TRUE(outcome.code == Code::kInvalidModel || outcome.code == Code::kOk) << outcome.message;
  parts = small();  // memory is not taken for a constant that cannot be
  parts.nodes = {node("ConstantOfShape", {"s"}, {"c"}), node("Add", {"x", "c"}, {"y"})};
  parts.initializers = {int64s("s", {2}, {int64_t{1} << 40, int64_t{1} << 40})};
  EXPECT_NE(import(model(parts)).code, Code::kOutOfMemory);
}

TEST(Hostile, Names) {
  GraphParts parts = small();
  parts.nodes = {node("Add", {"x", "v"}, {"w2"}), node("Neg", {"w2"}, {"v"}), node("Neg", {"v"}, {"y"})};
  expect(import(model(parts)), Code::kInvalidModel, "cycle");
  parts.nodes = {node("Add", {"x", "missing"}, {"y"})};
  expect(import(model(parts)), Code::kInvalidModel, "'missing'");
  parts.nodes = {node("Add", {"x", "w"}, {"y"}), node("Neg", {"x"}, {"y"})};
  expect(import(model(parts)), Code::kInvalidModel, "'y' is defined twice");
  parts = small();
  parts.outputs.push_back(value("nothing", 1, {}));
  expect(import(model(parts)), Code::kInvalidModel, "'nothing'");
}

TEST(Hostile, DeepNesting) {
  std::string body = graph({{node("Neg", {"x"}, {"r"})}, {}, {}, {value("r", 1, {})}});
  for (int depth = 0; depth < 200; ++depth) {
    body = graph(
        {{node("If", {"c"}, {"r"}, graph_attr("then_branch", body) + graph_attr("else_branch", graph({})))},
         {},
         {},
         {value("r", 1, {})}});
  }
  expect(import(model(body)), Code::kInvalidModel, "nested");
}

TEST(Hostile, FunctionsThatNeverEnd) {
  const auto function = [](const std::string& name, const std::vector<std::string>& nodes) {
    std::string out = text(1, name) + text(4, "a") + text(5, "b") + text(9, opset("", 17)) +
                      text(9, opset("local", 1)) + text(10, "local");
    for (const auto& n : nodes) out += text(7, n);
    return out;
  };
  GraphParts parts = small();
  parts.nodes = {node("F0", {"x"}, {"y"}, "", "local")};
  expect(import(model(graph(parts), 17, {function("F0", {node("F0", {"a"}, {"b"}, "", "local")})})),
         Code::kInvalidModel, "nested");
  // Thirty functions, each calling the next twice: 2^30 nodes from 4 KB.
  std::vector<std::string> functions;
  for (int i = 0; i < 30; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    functions.push_back(function("F" + std::to_string(i), {node(next, {"a"}, {"m"}, "", "local"),
                                                           node(next, {"m"}, {"b"}, "", "local")}));
  }
  functions.push_back(function("F30", {node("Neg", {"a"}, {"b"})}));
  expect(import(model(graph(parts), 17, functions)), Code::kInvalidModel, "unfolds");
}

TEST(Hostile, UnsupportedOperatorsInOneMessage) {
  GraphParts parts = small();
  parts.nodes = {node("Frobnicate", {"x"}, {"a"}, "", "", "first"), node("Neg", {"a"}, {"b"}),
                 node("Mumble", {"x"}, {"c"}, "", "com.example", "second"), node("Add", {"b", "c"}, {"y"})};
  const Outcome outcome = import(model(parts));
  expect(outcome, Code::kUnsupported, "Frobnicate (opset 17, node 'first')");
  expect(outcome, Code::kUnsupported, "com.example.Mumble");
  EXPECT_EQ(outcome.message.find("Neg"), std::string::npos) << outcome.message;
  parts.nodes = {node("TreeEnsembleRegressor", {"x"}, {"y"}, "", "ai.onnx.ml")};
  expect(import(model(parts)), Code::kUnsupported, "ai.onnx.ml");
}

TEST(Hostile, InputsThatAreNoTensors) {
  GraphParts parts = small();
  parts.inputs.push_back(text(1, "list") + text(2, text(4, text(1, text(1, number(1, 1))))));
  expect(import(model(parts)), Code::kUnsupported, "'list' is a sequence");
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("thrice_external_" + std::to_string(getpid()));
    fs::create_directories(root_ / "model");
    std::ofstream(root_ / "model" / "w.bin", std::ios::binary) << std::string(64, '\0');
    std::ofstream(root_ / "secret.bin", std::ios::binary) << std::string(64, '\0');
  }
  void TearDown() override { fs::remove_all(root_); }
  Outcome import_with(const std::vector<std::pair<std::string, std::string>>& entries) const {
    GraphParts parts = small();
    parts.initializers = {external("w", 1, {2}, entries)};
    return import(model(parts), (root_ / "model").string());
  }
  fs::path root_;
};

TEST_F(ExternalData, StaysInsideItsFolder) {
  EXPECT_EQ(import_with({{"location", "w.bin"}, {"offset", "8"}, {"length", "8"}}).code, Code::kOk);
  EXPECT_EQ(import_with({{"location", "w.bin"}}).code, Code::kOk);
  expect(import_with({{"location", "../secret.bin"}}), Code::kInvalidModel, "'..'");
  expect(import_with({{"location", "sub/../../secret.bin"}}), Code::kInvalidModel, "'..'");
  expect(import_with({{"location", (root_ / "model" / "w.bin").string()}}), Code::kInvalidModel, "absolute");
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  expect(import_with({{"location", "link.bin"}}), Code::kInvalidModel, "link");
  fs::create_directory_symlink(root_, root_ / "model" / "up");
  expect(import_with({{"location", "up/secret.bin"}}), Code::kInvalidModel, "link");
  expect(import_with({{"location", "none.bin"}}), Code::kNotFound, "none.bin");
  expect(import_with({{"location", "."}}), Code::kInvalidModel, "regular file");
  GraphParts parts = small();
  parts.initializers = {external("w", 1, {2}, {{"location", "w.bin"}})};
  expect(import(model(parts)), Code::kInvalidModel, "from memory");
}

TEST_F(ExternalData, OffsetsAndLengths) {
  expect(import_with({{"location", "w.bin"}, {"offset", "60"}}), Code::kInvalidModel, "offset 60");
  expect(import_with({{"location", "w.bin"}, {"offset", "18446744073709551608"}, {"length", "8"}}),
         Code::kInvalidModel, "offset");
  expect(import_with({{"location", "w.bin"}, {"offset", "9223372036854775800"}, {"length", "8"}}),
         Code::kInvalidModel, "offset");
  expect(import_with({{"location", "w.bin"}, {"offset", "-8"}}), Code::kInvalidModel, "offset");
  expect(import_with({{"location", "w.bin"}, {"length", "12"}}), Code::kInvalidModel, "length 12");
  expect(import_with({{"location", "w.bin"}, {"length", "8x"}}), Code::kInvalidModel, "length");
}

TEST(Hostile, StrippedWithoutSeed) {
  GraphParts parts = small();
  parts.initializers = {external("w", 1, {2}, {{"location", "thrice:stripped"}, {"length", "8"}})};
  expect(import(model(parts)), Code::kInvalidModel, "--random-weights");
  ImportOptions options;
  options.random_weights = true;
  EXPECT_EQ(import(model(parts), "", options).code, Code::kOk);
  parts.initializers = {external("w", 1, {2}, {{"location", "thrice:stripped"}, {"length", "9"}})};
  expect(import(model(parts), "", options), Code::kInvalidModel, "stripped");
}

}  // namespace
}  // namespace thrice::frontend
