// Catches: a failed write that damages the old file or leaves a temporary, wrong error codes, hashes that
// change between machines, random sequences that change, and log lines below the level.
#include "base/file.h"

#include <gtest/gtest.h>
#include <thrice/status.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>

#include "base/hash.h"
#include "base/log.h"
#include "base/rng.h"

namespace thrice {
namespace {

class File : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / ("thrice_file_test_" + std::to_string(::getpid())))
                  .string();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    set_file_fault(nullptr);
    std::filesystem::remove_all(folder_);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

Code code_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::kOk;
}

TEST_F(File, WriteReadList) {
  write_file_atomic(path("b"), std::string_view("hello"));
  write_file_atomic(path("a"), std::string_view(""));
  EXPECT_EQ(read_text(path("b")), "hello");
  EXPECT_EQ(read_text(path("a")), "");
  EXPECT_EQ(list_folder(folder_), (std::vector<std::string>{"a", "b"}));
}

TEST_F(File, EachFailingStepLeavesTheOldFile) {
  write_file_atomic(path("x"), std::string_view("old"));
  int tried = 0;
  for (const std::string step : {"open", "write", "fsync", "rename"}) {
    set_file_fault([&](const char* operation, const std::string&) { return operation == step ? ENOSPC : 0; });
    try {
      write_file_atomic(path("x"), std::string_view("new"));
      ADD_FAILURE() << step << " was to fail";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kIo);
      EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
      ++tried;
    }
    set_file_fault(nullptr);
    EXPECT_EQ(read_text(path("x")), "old");
    EXPECT_EQ(list_folder(folder_), (std::vector<std::string>{"x"})) << step;
  }
  EXPECT_EQ(tried, 4);
}

TEST_F(File, Errors) {
  write_file_atomic(path("x"), std::string_view("12345"));
  EXPECT_EQ(code_of([&] { read_file(path("none")); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { read_file(folder_); }), Code::kIo);
  EXPECT_EQ(code_of([&] { read_file(path("x"), 4); }), Code::kIo);
  EXPECT_EQ(code_of([&] { list_folder(path("none")); }), Code::kNotFound);
  EXPECT_EQ(code_of([&] { write_file_atomic(path("none/x"), std::string_view("1")); }), Code::kNotFound);
}

TEST(Hash, PublishedValueAndStreaming) {
  // XXH3-128 of no bytes, from the algorithm's published test vectors.
  EXPECT_EQ(hash_hex(std::string_view("")), "99aa06d3014798d86001c324468d497f");
  const auto two = [](std::string_view a, std::string_view b) { return Hasher().add(a).add(b).hex(); };
  EXPECT_NE(two("ab", "c"), two("a", "bc"));
  EXPECT_EQ(two("ab", "c"), two("ab", "c"));
  EXPECT_NE(Hasher().add(int64_t{1}).hex(), Hasher().add(int64_t{256}).hex());
}

TEST(Rng, SequenceIsFixed) {
  Rng rng(0);
  // splitmix64 from state 0, as published by its authors.
  EXPECT_EQ(rng.next(), 0xe220a8397b1dcdafull);
  EXPECT_EQ(rng.next(), 0x6e789e6aa1b965f4ull);
  double sum = 0, squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform(), z = rng.normal();
    ASSERT_TRUE(u >= 0 && u < 1);
    ASSERT_LT(rng.below(7), 7u);
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.03);
  EXPECT_NEAR(squares / kDraws, 1, 0.05);
}

TEST(Log, LevelsFilter) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, const std::string& line) { lines.push_back(line); });
  set_log_level(LogLevel::kInfo);
  log(LogLevel::kDebug, "hidden {}", 1);
  log(LogLevel::kError, "shown {}", 2);
  log(LogLevel::kInfo, "shown {}", 3);
  set_log_level(LogLevel::kWarning);
  log(LogLevel::kInfo, "hidden {}", 4);
  set_log_sink(nullptr);
  EXPECT_EQ(lines, (std::vector<std::string>{"shown 2", "shown 3"}));
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_THROW(parse_log_level("loud"), Error);
}

}  // namespace
}  // namespace thrice
