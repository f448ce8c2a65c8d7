// Would catch: a release that loads another card's binary, builds although a binary fits, or is refused
// without a word of what it holds.
#include "runtime/programs.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

#include "measure_fixture.h"

namespace thrice::runtime {
namespace {

// Tells which binaries it was given; runs nothing.
class Card : public backend::Device {
 public:
  explicit Card(const std::string& architecture, target::Api api = target::Api::kCuda) {
    spec_.api = api;
    spec_.architecture = architecture;
  }
  const target::DeviceSpec& spec() const override { return spec_; }
  backend::BufferPtr allocate(size_t) override { return nullptr; }
  backend::BufferPtr wrap(void*, size_t) override { return nullptr; }
  std::unique_ptr<backend::Stream> make_stream(void*) override { return nullptr; }
  backend::ProgramPtr load(const artifact::KernelBinary& binary, const std::vector<std::string>&) override {
    loaded = binary.architecture;
    return std::make_shared<backend::Program>();
  }
  backend::Compiler* compiler() override { return nullptr; }
  int64_t free_memory_bytes() override { return -1; }
  std::string loaded;

 private:
  target::DeviceSpec spec_;
};

class Programs : public testing::Test {
 protected:
  Programs() {
    release.manifest.programs.push_back({workload.hash, schedule.str(), "key", {"k"}});
    release.sources.push_back({artifact::Language::kCuda, "text", {"k"}, "key"});
    for (const char* name : {"sm_80", "sm_86", "sm_90a"}) add(name, "key");
    add("sm_89", "another");
  }
  void add(const std::string& architecture, const std::string& key) {
    artifact::KernelBinary binary;
    binary.format = artifact::BinaryFormat::kCubin;
    binary.architecture = architecture;
    binary.key = key;
    release.binaries.push_back(binary);
  }
  // The architecture that the device was given, or "built".
  std::string chosen(const std::shared_ptr<Card>& card, bool can_build = false) {
    std::string built;
    Builder build;
    if (can_build)
      build = [&](const artifact::KernelSource&) {
        built = "built";
        return std::make_shared<backend::Program>();
      };
    release_programs(card, std::make_shared<release::Release>(release), build)(workload, family, schedule);
    return built + card->loaded;
  }
  ir::Workload workload = test::unary_workload(ir::Op::relu);
  test::TextFamily family{"text"};
  artifact::Schedule schedule{"text", "only", {}};
  release::Release release;
};

TEST_F(Programs, TheFittingBinaryIsLoaded) {
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_80"), true), "sm_80");
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_90a"), true), "sm_90a");
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_89"), true), "sm_86");  // the nearest that runs there
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_87"), true), "sm_86");
}

TEST_F(Programs, PtxServesCardsThatNoBinaryFits) {
  add("compute_80", "key");
  release.binaries.back().format = artifact::BinaryFormat::kPtx;
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_120a"), true), "compute_80");
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_86"), true), "sm_86");  // a binary needs no compiler
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_75"), true), "built");
}

TEST_F(Programs, WhereNoneFitsTheTextIsBuilt) {
  EXPECT_EQ(chosen(std::make_shared<Card>("sm_100a"), true), "built");
}

TEST_F(Programs, WhereNothingCanBeBuiltTheRefusalSaysWhatThereIs) {
  for (const auto& card :
       {std::make_shared<Card>("sm_100a"), std::make_shared<Card>("PoCL", target::Api::kOpenCL)})
    try {
      chosen(card);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUnsupported);
      for (const char* word : {"sm_80", "sm_90a", "--target"})
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  // The language is another: the text cannot be built there either.
  EXPECT_THROW(chosen(std::make_shared<Card>("PoCL", target::Api::kOpenCL), true), Error);
}

TEST_F(Programs, ARegionWithoutProgramIsDamage) {
  schedule.tactic = "other";
  try {
    chosen(std::make_shared<Card>("sm_80"));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kCorrupt);
  }
}

}  // namespace
}  // namespace thrice::runtime
