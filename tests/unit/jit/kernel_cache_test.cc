// Would catch: a damaged entry that is taken for a hit, a key that forgets the compiler's version, a failed
// write that fails the build, two threads or processes that build one key into a broken file, a prune that
// drops the entries in use.
#include "jit/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thrice/status.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "jit/cache_entry.h"

namespace thrice::jit {
namespace {

namespace fs = std::filesystem;

// The null device with a compiler that counts, can be told another version, can fail, or be absent.
class CountingDevice : public backend::Device, public backend::Compiler {
 public:
  const target::DeviceSpec& spec() const override { return inner_->spec(); }
  backend::BufferPtr allocate(size_t bytes) override { return inner_->allocate(bytes); }
  backend::BufferPtr wrap(void* native, size_t bytes) override { return inner_->wrap(native, bytes); }
  std::unique_ptr<backend::Stream> make_stream(void*) override { return inner_->make_stream(); }
  backend::ProgramPtr load(const artifact::KernelBinary& binary,
                           const std::vector<std::string>& names) override {
    if (refuses.exchange(false)) throw Error(Code::kCorrupt, "the driver refuses this binary");
    return inner_->load(binary, names);
  }
  backend::Compiler* compiler() override { return has_compiler ? this : nullptr; }
  int64_t free_memory_bytes() override { return -1; }
  artifact::KernelBinary compile(const artifact::KernelSource& source) override {
    ++compiled;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (fails) throw Error(Code::kCompileFailed, "no");
    artifact::KernelBinary binary = inner_->compiler()->compile(source);
    binary.log = "a warning";
    return binary;
  }
  std::string version() const override { return version_text; }

  std::atomic<int> compiled{0};
  std::atomic<bool> refuses{false};
  bool fails = false, has_compiler = true;
  std::string version_text = "1";

 private:
  backend::DevicePtr inner_ = backend::open_device("null:0");
};

artifact::KernelSource source(const std::string& text) {
  artifact::KernelSource s;
  s.text = text;
  s.kernels = {"k"};
  s.key = "key of " + text;
  return s;
}

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "thrice-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override {
    set_file_fault({});
    fs::remove_all(folder);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  KernelCache::Built build(const std::string& text) {
    return KernelCache(device, folder).build(source(text));
  }

  std::string folder;
  std::shared_ptr<CountingDevice> device = std::make_shared<CountingDevice>();
};

TEST_F(Cache, HitsFromMemoryAndFromDisk) {
  KernelCache cache(device, folder);
  EXPECT_FALSE(cache.build(source("a")).was_cached);
  EXPECT_TRUE(cache.build(source("a")).was_cached);
  EXPECT_EQ(device->compiled, 1);
  const auto again = build("a");
  EXPECT_TRUE(again.was_cached);
  EXPECT_EQ(again.binary->log, "a warning");  // kept on success too
  EXPECT_EQ(again.binary->bytes.size(), 1u);
  EXPECT_EQ(device->compiled, 1);
  EXPECT_FALSE(build("b").was_cached);
  EXPECT_EQ(KernelCache::statistics(folder).entries, 2);
}

TEST_F(Cache, AnotherCompilerIsAnotherKey) {
  build("a");
  device->version_text = "2";
  EXPECT_FALSE(build("a").was_cached);
}

TEST_F(Cache, EveryDamageIsAMissAndIsRepaired) {
  build("a");
  ASSERT_EQ(files().size(), 1u);
  const std::string path = files()[0].string();
  const auto good = read_file(path);
  for (size_t at = 0; at < good.size(); at += 7) {
    auto bad = good;
    bad[at] ^= std::byte{0x10};
    EXPECT_FALSE(read_entry(bad)) << "byte " << at;
  }
  for (size_t length : {size_t{0}, size_t{5}, good.size() / 2, good.size() - 1})
    EXPECT_FALSE(read_entry(std::span(good).first(length))) << length;
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read_entry(longer));
  ASSERT_TRUE(read_entry(good));

  std::ofstream(path, std::ios::binary | std::ios::trunc) << "garbage";
  EXPECT_FALSE(build("a").was_cached);
  EXPECT_TRUE(build("a").was_cached);
}

TEST_F(Cache, BinaryThatTheDriverRefusesIsAMiss) {
  build("a");
  device->refuses = true;
  EXPECT_FALSE(build("a").was_cached);
}

TEST_F(Cache, EntryOfAnotherSourceUnderThisNameIsAMiss) {
  build("a");
  const std::string path = files()[0].string();
  auto entry = read_entry(read_file(path));
  ASSERT_TRUE(entry);
  entry->key = "key of another";
  write_file_atomic(path, write_entry(*entry));
  EXPECT_FALSE(build("a").was_cached);
}

TEST_F(Cache, FullDiskCostsNothingButTheEntry) {
  set_file_fault([](const char* operation, const std::string&) { return operation[0] == 'w' ? ENOSPC : 0; });
  EXPECT_FALSE(build("a").was_cached);
  set_file_fault({});
  EXPECT_TRUE(files().empty());
}

TEST_F(Cache, ThreadsBuildOneKeyOnce) {
  KernelCache cache(device, folder);
  std::vector<std::thread> threads;
  std::atomic<int> fresh{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { fresh += cache.build(source("a")).was_cached ? 0 : 1; });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(device->compiled, 1);
  EXPECT_EQ(fresh, 1);
}

TEST_F(Cache, ProcessesShareTheFolder) {
  std::vector<pid_t> children;
  for (int p = 0; p < 2; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool good = true;
      for (int i = 0; i < 5; ++i) good &= build("a" + std::to_string(i)).program != nullptr;
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(build("a" + std::to_string(i)).was_cached);
  EXPECT_EQ(files().size(), 5u);  // nothing temporary stays
}

TEST_F(Cache, FailureIsRememberedAndNotStored) {
  KernelCache cache(device, folder);
  device->fails = true;
  for (int i = 0; i < 2; ++i) try {
      cache.build(source("a"));
      FAIL() << "built";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), Code::kCompileFailed);
    }
  EXPECT_EQ(device->compiled, 1);
  EXPECT_TRUE(files().empty());
}

TEST_F(Cache, WithoutACompilerOnlyHitsAreServed) {
  device->version_text = "none";
  build("a");
  device->has_compiler = false;
  EXPECT_TRUE(build("a").was_cached);
  try {
    build("b");
    FAIL() << "built";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kUnsupported);
  }
}

TEST_F(Cache, PruneDropsTheLeastRecentlyUsed) {
  for (const char* text : {"a", "b", "c"}) build(text);
  auto now = fs::file_time_type::clock::now();
  for (const fs::path& file : files()) fs::last_write_time(file, now - std::chrono::hours(1));
  EXPECT_TRUE(build("b").was_cached);  // used now
  const auto before = KernelCache::statistics(folder);
  EXPECT_EQ(KernelCache::prune(folder, before.bytes), 0);
  EXPECT_GT(KernelCache::prune(folder, before.bytes / 3), 0);
  EXPECT_EQ(KernelCache::statistics(folder).entries, 1);
  EXPECT_TRUE(build("b").was_cached);
  EXPECT_EQ(KernelCache::statistics(folder + "/nowhere").entries, 0);
}

TEST_F(Cache, InMemoryOnlyWritesNothing) {
  KernelCache cache(device, "");
  cache.build(source("a"));
  EXPECT_TRUE(cache.build(source("a")).was_cached);
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace thrice::jit
