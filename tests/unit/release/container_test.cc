// Catches a damaged or cut release that is read as if it were whole, and a write that leaves half a file on a
// full disk.
#include "release/container.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace thrice::release {
namespace {

std::string path() { return testing::TempDir() + "/container_test.thrice"; }
Sections sections() {
  static const std::vector<std::byte> one{std::byte{1}}, two{std::byte{2}}, many(1000, std::byte{3});
  return {{"a", {one, two}}, {"b", {many}}, {"empty", {}}};
}

TEST(Container, RoundTripAndEveryByteGuarded) {
  write_container(path(), sections());
  const std::vector<std::byte> whole = read_file(path());
  const Container read = parse_container(whole, "whole");
  EXPECT_EQ(read.section("b").size(), 1000u);
  const auto a = read.section("a");  // of two pieces
  EXPECT_EQ(std::vector<std::byte>(a.begin(), a.end()), (std::vector<std::byte>{std::byte{1}, std::byte{2}}));
  EXPECT_THROW(parse_container(whole, "whole").section("c"), Error);
  for (size_t cut = 0; cut < whole.size(); cut += 37)
    EXPECT_THROW(parse_container({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}, "cut"),
                 Error)
        << cut;
  for (size_t at = 0; at < 100; ++at) {  // head and table: every byte counts
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= std::byte{0x10};
    EXPECT_THROW(parse_container(damaged, "damaged"), Error) << at;
  }
  std::vector<std::byte> damaged = whole;
  damaged[damaged.size() / 2] ^= std::byte{1};  // inside the largest section
  EXPECT_THROW(parse_container(damaged, "damaged"), Error);
}

TEST(Container, FullDiskKeepsTheOldRelease) {
  write_container(path(), sections());
  const std::vector<std::byte> before = read_file(path());
  set_file_fault([](const char* operation, const std::string&) {
    return std::string(operation) == "fsync" ? ENOSPC : 0;
  });
  const std::vector<std::byte> nine{std::byte{9}};
  EXPECT_THROW(write_container(path(), {{"other", {nine}}}), Error);
  set_file_fault({});
  EXPECT_EQ(read_file(path()), before);
}

}  // namespace
}  // namespace thrice::release
