// Catches weights or free text that stay in a stripped file, integer tensors that go, and a second strip that
// changes it.
#include <gtest/gtest.h>
#include <thrice/status.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "frontend/import.h"
#include "unit/frontend/model_writer.h"

namespace thrice::frontend {
namespace {

using namespace thrice::tests;
namespace fs = std::filesystem;

class Strip : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("thrice_strip_" + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string stripped(const std::string& file) const {
    const std::string from = (root_ / "from.onnx").string(), to = (root_ / "to.onnx").string();
    write_file_atomic(from, std::string_view(file));
    strip_model(from, to);
    return read_text(to);
  }
  fs::path root_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Strip, DropsWeightsAndTextKeepsStructure) {
  const std::vector<float> weights(300, 1.2345f);
  const std::string secret = raw(std::vector<float>{1.2345f, 1.2345f});
  const std::vector<int64_t> table(300, 0x1122334455667788);
  const std::string small = raw(std::vector<float>{0.777f});
  const std::string unknown = text(99, "field of a later format");
  const std::string file =
      model({{node("MatMul", {"x", "w"}, {"m"}) + text(6, "secret path"),
              node("Constant", {}, {"c"}, tensor_attr("value", floats("", {300}, weights))),
              node("Add", {"m", "c"}, {"s"}), node("Mul", {"s", "e"}, {"y"}),
              node("Gather", {"y", "t"}, {"g"})},
             {floats("w", {1, 300}, weights) + text(12, "secret note"), int64s("t", {300}, table),
              floats("e", {}, {0.777f})},
             {value("x", 1, {"n", "1"})},
             {value("y", 1, {"n", "300"})}}) +
      text(6, "secret doc") + text(14, text(1, "k") + text(2, "secret meta")) + unknown;
  const std::string result = stripped(file);
  EXPECT_FALSE(has(result, secret));
  EXPECT_FALSE(has(result, "secret"));
  EXPECT_TRUE(has(result, raw(table)));
  EXPECT_TRUE(has(result, small));
  EXPECT_TRUE(has(result, unknown));
  EXPECT_TRUE(has(result, text(13, text(1, "location") + text(2, "thrice:stripped")) +
                              text(13, text(1, "length") + text(2, "1200")) + number(14, 1)));
  EXPECT_EQ(stripped(result), result);

  try {
    import_model((root_ / "to.onnx").string());
    FAIL() << "a stripped model was imported without weights";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "--random-weights")) << error.what();
  }
  ImportOptions options;
  options.random_weights = true;
  const ir::Graph graph = import_model((root_ / "to.onnx").string(), options);
  EXPECT_EQ(ir::shape_str(graph.value(graph.outputs[0]).type.shape), "[n, 300]");
}

TEST_F(Strip, RefusesWhatIsNoModel) { EXPECT_THROW(stripped("this is text"), Error); }

}  // namespace
}  // namespace thrice::frontend
