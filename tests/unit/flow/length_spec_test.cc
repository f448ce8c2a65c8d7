// Would catch: lengths read wrongly from a file, nonsense that is taken, a dimension guessed where there are
// several.
#include "flow/length_spec.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <filesystem>
#include <fstream>

namespace thrice::flow {
namespace {

class Lengths : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = testing::TempDir() + "/lengths.txt";
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal(const std::string& text, const std::set<std::string>& symbols = {"seq"}) {
    try {
      parse_lengths(text, symbols);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(Lengths, Uniform) {
  const LengthSpec spec = parse_lengths("uniform:3-6", {"seq"});
  EXPECT_EQ(spec.symbol, "seq");
  ASSERT_EQ(spec.lengths.size(), 4u);
  EXPECT_EQ(spec.lengths[0].length, 3);
  EXPECT_EQ(spec.lengths[3].length, 6);
  EXPECT_DOUBLE_EQ(spec.lengths[1].share, 0.25);
  EXPECT_EQ(parse_lengths("width=uniform:1-512", {"batch", "width"}).symbol, "width");
}

TEST_F(Lengths, AFileOfRequests) {
  const LengthSpec spec =
      parse_lengths("seq=" + file("# seen on Monday\n12\n7 3  # short\n\n12\n"), {"batch", "seq"});
  ASSERT_EQ(spec.lengths.size(), 2u);
  EXPECT_EQ(spec.lengths[0].length, 7);
  EXPECT_DOUBLE_EQ(spec.lengths[0].share, 0.6);
  EXPECT_DOUBLE_EQ(spec.lengths[1].share, 0.4);
}

TEST_F(Lengths, WhatIsWrongIsNamed) {
  const auto expect = [&](const std::string& text, const std::string& word,
                          const std::set<std::string>& symbols = {"seq"}) {
    EXPECT_NE(refusal(text, symbols).find(word), std::string::npos) << refusal(text, symbols);
  };
  expect("uniform:9-2", "9 is above 2");
  expect("uniform:0-5", "'0' is no whole number");
  expect("uniform:7", "'7' is no range");
  expect("uniform:1-99999999", "at most 65536");
  expect(file("5\nlong\n"), "lengths.txt:2");
  expect(file("5 2 1\n"), "one word too many");
  expect(file("5 -2\n"), "'-2'");
  expect(file("# nothing\n"), "holds no length");
  expect("uniform:1-5", "which dimension", {"batch", "seq"});
  expect("uniform:1-5", "no symbolic dimension", {});
  expect("/no/such/file", "/no/such/file");
}

}  // namespace
}  // namespace thrice::flow
