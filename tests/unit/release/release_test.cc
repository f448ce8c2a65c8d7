// Would catch: constants that change on their way through a release, strings above all, and a damaged one
// that is read beyond its section.
#include "release/release.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "base/file.h"

namespace thrice::release {
namespace {

// A graph whose outputs are these constants.
Release with(const std::vector<ir::Tensor>& constants) {
  auto graph = std::make_shared<ir::Graph>();
  for (const ir::Tensor& t : constants) {
    const ir::ValueId id = graph->add_value({t.dtype(), ir::to_shape(t.shape())});
    graph->values[static_cast<size_t>(id)].constant = t;
    graph->outputs.push_back(id);
    graph->output_names.push_back("y" + std::to_string(id));
  }
  Release release;
  release.graph = graph;
  release.plan = std::make_shared<artifact::Plan>();
  release.manifest.plan_digest = release.plan->digest();
  return release;
}
std::vector<ir::Tensor> round_trip(const Release& release) {
  const std::string path = testing::TempDir() + "/release_test.thrice";
  write_release(path, release);
  const Release read = read_release(path);
  std::vector<ir::Tensor> constants;
  for (const ir::ValueId id : read.graph->outputs) constants.push_back(*read.graph->value(id).constant);
  return constants;
}

TEST(Release, ConstantsOfEveryKindComeBack) {
  const std::vector<std::string> texts = {"", "two\nlines", std::string("zero \0 inside", 13), "Grüße"};
  const auto read = round_trip(
      with({ir::Tensor::of<float>(DType::kF32, {2, 2}, {1, -2, 3.5, 4}), ir::Tensor::strings({2, 2}, texts),
            ir::Tensor::ints({7, -8}), ir::Tensor::strings({0}, {}), ir::Tensor::scalar(DType::kF64, 0.1)}));
  ASSERT_EQ(read.size(), 5u);
  EXPECT_DOUBLE_EQ(read[0].as_double(2), 3.5);
  EXPECT_EQ(read[1].shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(read[1].string_values(), texts);
  EXPECT_EQ(read[2].as_int(1), -8);
  EXPECT_EQ(read[3].size(), 0);
  EXPECT_EQ(read[4].as_double(0), 0.1);
}

TEST(Release, EqualReleasesGiveEqualBytes) {
  const std::string a = testing::TempDir() + "/release_a.thrice",
                    b = testing::TempDir() + "/release_b.thrice";
  const Release release = with({ir::Tensor::strings({1}, {"x"}), ir::Tensor::ints({1, 2, 3})});
  write_release(a, release);
  write_release(b, release);
  EXPECT_EQ(read_file(a), read_file(b));
}

}  // namespace
}  // namespace thrice::release
