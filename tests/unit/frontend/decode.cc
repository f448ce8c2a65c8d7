// Catches wrong field numbers, storage fields read as another type, unsorted nodes left unsorted, names lost.
#include "frontend/onnx/decode.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "unit/frontend/model_writer.h"

namespace thrice::frontend::onnx {
namespace {

using namespace thrice::tests;

std::span<const std::byte> bytes(const std::string& s) { return std::as_bytes(std::span(s)); }

std::string field_tensor(int type, const std::vector<int64_t>& dims, const std::string& field) {
  std::string out;
  for (const int64_t d : dims) out += number(1, d);
  return out + number(2, type) + field;
}

TEST(Decode, StorageFields) {
  const auto as_ints = [](const std::string& proto) {
    const ir::Tensor t = decode_tensor_bytes(bytes(proto));
    std::vector<int64_t> result;
    for (int64_t i = 0; i < t.size(); ++i) result.push_back(t.as_int(i));
    return result;
  };
  const auto packed = [](int field, const std::vector<int64_t>& values) {
    std::string all;
    for (const int64_t v : values) all += varint(static_cast<uint64_t>(v));
    return text(field, all);
  };
  EXPECT_EQ(as_ints(field_tensor(7, {3}, packed(7, {1, -2, 3}))), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(as_ints(field_tensor(6, {2}, packed(5, {-1, 5}))), (std::vector<int64_t>{-1, 5}));
  EXPECT_EQ(as_ints(field_tensor(3, {2}, packed(5, {-128, 127}))), (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(as_ints(field_tensor(12, {1}, packed(11, {4294967295}))), (std::vector<int64_t>{4294967295}));
  EXPECT_EQ(as_ints(field_tensor(9, {2}, packed(5, {0, 7}))), (std::vector<int64_t>{0, 1}));
  // Two 4-bit elements a byte, low half first, signed ones extended; an odd count leaves a half unused.
  EXPECT_EQ(as_ints(field_tensor(22, {3}, text(9, std::string("\xf1\x08", 2)))),
            (std::vector<int64_t>{1, -1, -8}));
  EXPECT_EQ(as_ints(field_tensor(21, {3}, packed(5, {0xf1, 0x08}))), (std::vector<int64_t>{1, 15, 8}));
  EXPECT_EQ(as_ints(field_tensor(26, {5}, text(9, std::string("\xe4\x01", 2)))),
            (std::vector<int64_t>{0, 1, -2, -1, 1}));
  EXPECT_EQ(decode_tensor_bytes(bytes(field_tensor(10, {}, packed(5, {0x3e00})))).as_double(0), 1.5);
  EXPECT_EQ(
      decode_tensor_bytes(bytes(field_tensor(16, {}, text(9, std::string("\xc0\x3f", 2))))).as_double(0),
      1.5);
  EXPECT_EQ(decode_tensor_bytes(bytes(field_tensor(8, {1}, text(6, "word")))).string_values()[0], "word");
}

TEST(Decode, SortsNodesOutOfOrder) {
  const Model m = decode_model(
      bytes(model({{node("Relu", {"b"}, {"y"}), node("Neg", {"x"}, {"a"}), node("Abs", {"a"}, {"b"})},
                   {},
                   {value("x", 1, {"2"})},
                   {value("y", 1, {"2"})}})));
  ASSERT_EQ(m.graph.nodes.size(), 3u);
  EXPECT_EQ(m.graph.nodes[0].op_type, "Neg");
  EXPECT_EQ(m.graph.nodes[1].op_type, "Abs");
  EXPECT_EQ(m.graph.nodes[2].op_type, "Relu");
}

TEST(Decode, SortSeesWhatBodiesUse) {
  const std::string body = graph({{node("Neg", {"late"}, {"r"})}, {}, {}, {value("r", 1, {})}});
  const Model m = decode_model(bytes(
      model({{node("If", {"c"}, {"y"}, graph_attr("then_branch", body) + graph_attr("else_branch", body)),
              node("Abs", {"x"}, {"late"})},
             {},
             {value("c", 9, {}), value("x", 1, {})},
             {value("y", 1, {})}})));
  EXPECT_EQ(m.graph.nodes[0].op_type, "Abs");
}

TEST(Decode, SparseInitializerBecomesDense) {
  const std::string sparse =
      text(1, floats("s", {2}, {5, 7})) + text(2, int64s("", {2}, {1, 5})) + number(3, 2) + number(3, 3);
  const std::string g = graph({{node("Neg", {"s"}, {"y"})}, {}, {}, {value("y", 1, {})}}) + text(15, sparse);
  const Model m = decode_model(bytes(model(g)));
  const ir::Tensor& t = m.graph.initializers.at(0).tensor;
  EXPECT_EQ(t.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(t.as_double(1), 5);
  EXPECT_EQ(t.as_double(5), 7);
  EXPECT_EQ(t.as_double(0), 0);
}

TEST(Decode, SymbolsAndUnknownExtents) {
  const Model m = decode_model(bytes(model(
      {{node("Neg", {"x"}, {"y"})}, {}, {value("x", 1, {"batch", "?", "3", "-1"})}, {value("y", 1, {})}})));
  const auto& shape = m.graph.inputs.at(0).shape;
  EXPECT_EQ(shape[0].symbol, "batch");
  EXPECT_FALSE(shape[1].is_number);
  EXPECT_EQ(shape[2].number, 3);
  EXPECT_FALSE(shape[3].is_number);
}

}  // namespace
}  // namespace thrice::frontend::onnx
