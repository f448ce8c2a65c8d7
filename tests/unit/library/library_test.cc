// Catches a line that does not come back as it was written, an operator that stands twice in the repository's
// library, a library that lost operators, benchmark sets that name what is not there, and neighbours that are
// not near.
#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "frontend/import.h"
#include "library/extract.h"
#include "library/folder.h"
#include "library/memory.h"
#include "transform/transform.h"

namespace thrice::library {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = std::string(THRICE_SOURCE_DIR) + "/library";
const std::string kLine =
    "00112233445566aa | Conv | f32 | window | variable | f32[s0,64,56,s1] f32[64,64,3,3]w | conv(0,1) "
    "pads=1,1,1,1 strides=1,1 | s0=1..64@1 s1=32..3200@320 | cols=17920 depth=64 flops=1500000000 | a,b";

const std::vector<Entry>& repository() {
  static const std::vector<Entry> kEntries = read_folder(kFolder + "/operators");
  return kEntries;
}

std::string refusal(const std::string& line) {
  try {
    from_line(line);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string scratch(const std::string& name) {
  const std::string folder = testing::TempDir() + "/library_test/" + name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(Library, ALineComesBack) {
  const Entry e = from_line(kLine);
  EXPECT_EQ(to_line(e), kLine);
  EXPECT_EQ(e.extents.at("s1"), (Range{32, 3200, 320}));
  EXPECT_TRUE(e.variable);
  EXPECT_EQ(core_of(e), "conv");
}

TEST(Library, AWrongLineNamesItsColumn) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string line = kLine;
    return refusal(line.replace(line.find(from), from.size(), to));
  };
  EXPECT_NE(with("00112233445566aa", "xyz").find("'id'"), std::string::npos);
  EXPECT_NE(with("window", "windows").find("'pattern'"), std::string::npos);
  EXPECT_NE(with("| variable", "| long").find("'length'"), std::string::npos);
  EXPECT_NE(with("s0=1..64@1", "s0=64..1@1").find("'extents'"), std::string::npos);
  EXPECT_NE(with("s0=1..64@1", "s0=1..64").find("'extents'"), std::string::npos);
  EXPECT_NE(with("depth=64", "depth=deep").find("'features'"), std::string::npos);
  EXPECT_NE(refusal("a | b").find("10 columns"), std::string::npos);
}

TEST(Library, TheRepositorysOperatorsAreDistinctAndMany) {
  std::set<std::string> identities, networks;
  int variable = 0;
  for (const Entry& e : repository()) {
    EXPECT_TRUE(identities.insert(e.identity()).second) << to_line(e);
    EXPECT_FALSE(e.features.empty());
    networks.insert(e.networks.begin(), e.networks.end());
    variable += e.variable;
  }
  EXPECT_GE(identities.size(), 1000u);
  EXPECT_GE(networks.size(), 40u);
  EXPECT_GE(variable, 200);
}

TEST(Library, FilesAreAsWeWriteThem) {
  const std::string again = scratch("again");
  write_folder(again, repository());
  for (const auto& file : fs::directory_iterator(kFolder + "/operators")) {
    std::ifstream ours(file.path()), theirs(fs::path(again) / file.path().filename());
    std::stringstream a, b;
    a << ours.rdbuf();
    b << theirs.rdbuf();
    EXPECT_EQ(a.str(), b.str()) << file.path().filename();
  }
}

TEST(Library, ADuplicateFailsWithBothPlaces) {
  const std::string folder = scratch("twice");
  std::ofstream(folder + "/window.txt") << "# head\n" << kLine << "\n";
  EXPECT_EQ(read_folder(folder).size(), 1u);
  std::string same_operator = kLine;
  same_operator[0] = 'f';  // another id, the same operator
  for (const std::string& line : {kLine, same_operator}) {
    std::ofstream(folder + "/other.txt") << line << "\n";
    try {
      read_folder(folder);
      FAIL() << line;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("window.txt:2"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("other.txt:1"), std::string::npos) << error.what();
    }
  }
}

TEST(Library, MergingKeepsOneAndWidens) {
  std::vector<Entry> into{from_line(kLine)};
  Entry again = into[0], other = into[0];
  again.networks = {"c"};
  again.extents["s1"] = {16, 4000, 320};
  other.id = "ffffffffffffffff";
  other.operands = "f32[1]";
  EXPECT_EQ(merge(into, {again, other}), 1u);
  ASSERT_EQ(into.size(), 2u);
  EXPECT_EQ(into[0].networks, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(into[0].extents.at("s1"), (Range{16, 4000, 320}));
}

TEST(Library, BenchmarkSetsNameOperatorsOfTheirLength) {
  std::map<std::string, bool> lengths;
  for (const Entry& e : repository()) lengths[e.id] = e.variable;
  for (const std::string set : {"fixed", "variable"}) {
    std::ifstream in(kFolder + "/benchmark/" + set + ".txt");
    int count = 0;
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || line[0] == '#') continue;
      ++count;
      const auto it = lengths.find(line.substr(0, 16));
      ASSERT_NE(it, lengths.end()) << line;
      EXPECT_EQ(it->second, set == "variable") << line;
    }
    EXPECT_GE(count, 64) << set;
  }
}

TEST(Library, AnExportedNetworkIsInIt) {
  frontend::ImportOptions import;
  import.random_weights = true;
  ir::Graph graph = frontend::import_model(std::string(THRICE_DATA_DIR) + "/networks/resnet18.onnx", import);
  transform::run_transforms(graph, {});
  ModelRanges ranges;
  ranges.symbols["batch"] = {1, 64, 1};
  ranges.sample_symbols = {"batch"};
  const std::vector<Entry> found = operators_of(graph, "resnet18", ranges);
  EXPECT_GE(found.size(), 20u);
  std::set<std::string> known;
  for (const Entry& e : repository()) known.insert(e.identity());
  for (const Entry& e : found) {
    EXPECT_TRUE(known.count(e.identity())) << "run tools/operator_library.py: " << to_line(e);
    EXPECT_EQ(from_line(to_line(e)), e);
  }
  ranges.symbols.clear();
  EXPECT_THROW(operators_of(graph, "resnet18", ranges), Error);
}

TEST(Library, DistancesTellNearFromFar) {
  const Entry conv = from_line(kLine);
  Entry wider = conv, product = conv;
  wider.features["cols"] *= 2;
  product.pattern = "product";
  product.nodes = "matmul(0,1)";
  EXPECT_EQ(distance(conv, conv), 0);
  EXPECT_NEAR(distance(conv, wider), 1, 1e-9);  // twice as large: one step of log2
  EXPECT_EQ(distance(conv, wider), distance(wider, conv));
  EXPECT_TRUE(std::isinf(distance(conv, product)));
}

TEST(Library, TheNearestNeighbourGivesItsSchedule) {
  store::Store store(scratch("store") + "/store.sqlite");
  const std::string here = store.put_environment(R"({"name": "card", "architecture": "x", "driver": "2"})");
  const std::string older = store.put_environment(R"({"name": "card", "architecture": "x", "driver": "1"})");
  const std::string other = store.put_environment(R"({"name": "another", "architecture": "x"})");
  Entry near = from_line(kLine), far = near, asked = near;
  near.id = "1111111111111111";
  near.features["cols"] *= 2;
  far.id = "2222222222222222";
  far.features["cols"] *= 4096;
  store.put_best({asked.id, here, "s0=1", to_line(asked), "conv/direct reg_m=1", 9, 1});
  store.put_best({near.id, older, "s0=1", to_line(near), "conv/direct reg_m=2", 9, 1});
  store.put_best({near.id, other, "s0=1", to_line(near), "conv/direct reg_m=3", 9, 1});
  store.put_best({far.id, here, "s0=1", to_line(far), "conv/direct reg_m=4", 9, 1});
  const Memory memory(store, here);
  EXPECT_EQ(memory.size(), 3u);  // not the other card's
  const auto found = memory.neighbours(asked, "s0=1");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].schedule.str(), "conv/direct reg_m=2");
  EXPECT_NEAR(found[0].distance, 1, 1e-9);
  EXPECT_EQ(memory.neighbours(asked, "s0=8").size(), 2u);  // its own best at another shape is near, too
}

}  // namespace
}  // namespace thrice::library
