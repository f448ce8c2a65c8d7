// Catches: kept buffers made anew at every run (slow, and memory that grows), or half-made ones left behind
// by a failure.
#include "exec/kept_buffers.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace thrice::exec {
namespace {

class Bytes final : public backend::Buffer {
 public:
  explicit Bytes(size_t bytes) : bytes_(bytes) {}
  size_t bytes() const override { return bytes_; }
  void* native() const override { return nullptr; }

 private:
  size_t bytes_;
};

TEST(KeptBuffers, MadeOnceAKey) {
  KeptBuffers kept;
  int made = 0;
  const KeptBuffers::Make make = [&]() -> backend::BufferPtr {
    ++made;
    return std::make_shared<Bytes>(120);
  };
  const auto first = kept.get("0:120", make), again = kept.get("0:120", make);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(first, again);
  EXPECT_EQ(kept.bytes(), 120);
  EXPECT_NE(kept.get("1:120", make), first);
  EXPECT_EQ(made, 2);
}

TEST(KeptBuffers, NothingIsLeftOfAFailure) {
  KeptBuffers kept;
  const auto fail = []() -> backend::BufferPtr { throw std::runtime_error("out of memory"); };
  EXPECT_THROW(kept.get("0", fail), std::runtime_error);
  EXPECT_EQ(kept.bytes(), 0);
  EXPECT_EQ(kept.get("0", [] { return std::make_shared<Bytes>(8); })->bytes(), 8u);
}

}  // namespace
}  // namespace thrice::exec
