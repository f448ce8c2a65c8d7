#include "jit/kernel_cache.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "jit/cache_entry.h"

namespace thrice::jit {
namespace {

namespace fs = std::filesystem;

// Counts changes of what an entry means (argument order, prelude contract). Part of every key.
constexpr int64_t kProductSchema = 2;
constexpr const char* kSuffix = ".kernel";
// Programs kept loaded though nobody holds them: a tuner comes back to its best ones. Older ones are loaded
// from disk again.
constexpr size_t kKept = 256;

}  // namespace

struct KernelCache::State {
  // One key. Its mutex is held while it is built, so that a second thread waits and then finds it.
  struct Slot {
    std::mutex mutex;
    std::weak_ptr<backend::Program> program;
    std::weak_ptr<const artifact::KernelBinary> binary;
    std::string failure;  // the compiler's answer, which does not change
  };
  backend::DevicePtr device;
  std::string folder, device_key, compiler_version;
  std::mutex mutex;  // guards what follows
  std::map<std::string, std::shared_ptr<Slot>> slots;
  std::deque<Built> kept;

  std::string path_of(const std::string& key) const {
    return fmt::format("{}/{}/{}{}", folder, key.substr(0, 2), key, kSuffix);
  }
  std::string key_of(const artifact::KernelSource& source) const {
    Hasher hasher;
    hasher.add(source.key).add(device_key).add(compiler_version).add(kProductSchema);
    for (const std::string& kernel : source.kernels) hasher.add(kernel);
    return hasher.hex();
  }
  std::shared_ptr<Slot> slot_of(const std::string& key) {
    const std::lock_guard<std::mutex> lock(mutex);
    std::shared_ptr<Slot>& slot = slots[key];
    if (!slot) slot = std::make_shared<Slot>();
    return slot;
  }
  void keep(const Built& built) {
    const std::lock_guard<std::mutex> lock(mutex);
    kept.push_back(built);
    if (kept.size() > kKept) kept.pop_front();
  }
  bool load_from_disk(const artifact::KernelSource& source, const std::string& key, Built& built) const;
  void save(const std::string& key, const artifact::KernelBinary& binary) const;
};

// A hit needs an entry that is whole, of this source, and that the driver takes; anything else is a miss.
bool KernelCache::State::load_from_disk(const artifact::KernelSource& source, const std::string& key,
                                        Built& built) const {
  if (folder.empty()) return false;
  const std::string path = path_of(key);
  try {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return false;
    auto entry = read_entry(read_file(path));
    if (!entry || entry->key != source.key) return false;
    built.program = device->load(*entry, source.kernels);
    // A builder without a card cannot tell what only the loaded program tells.
    const backend::Program::Resources told = built.program->resources();
    if (entry->registers < 0) entry->registers = told.registers;
    if (entry->spill_bytes < 0) entry->spill_bytes = told.spill_bytes;
    entry->static_shared_bytes = std::max(entry->static_shared_bytes, told.static_shared_bytes);
    built.binary = std::make_shared<artifact::KernelBinary>(std::move(*entry));
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);  // prune drops the oldest
    return true;
  } catch (const Error& error) {
    if (error.code() == Code::kOutOfMemory) throw;
    return false;
  }
}

void KernelCache::State::save(const std::string& key, const artifact::KernelBinary& binary) const {
  if (folder.empty()) return;
  const std::string path = path_of(key);
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  if (failed) return;
  try {
    write_file_atomic(path, write_entry(binary));
  } catch (const Error&) {
    // A full disk or a read-only folder costs the next process a build, and this one nothing.
  }
}

KernelCache::KernelCache(backend::DevicePtr device, std::string folder) : state_(std::make_unique<State>()) {
  state_->device_key = device->spec().key();
  state_->compiler_version = device->compiler() ? device->compiler()->version() : "none";
  state_->device = std::move(device);
  state_->folder = std::move(folder);
}
KernelCache::~KernelCache() = default;

KernelCache::Built KernelCache::build(const artifact::KernelSource& source) {
  const std::string key = state_->key_of(source);
  const std::shared_ptr<State::Slot> slot = state_->slot_of(key);
  const std::lock_guard<std::mutex> lock(slot->mutex);
  Built built;
  built.program = slot->program.lock();
  built.binary = slot->binary.lock();
  built.was_cached = true;
  if (built.program && built.binary) return built;
  if (!slot->failure.empty()) throw Error(Code::kCompileFailed, slot->failure);
  if (!state_->load_from_disk(source, key, built)) {
    backend::Compiler* compiler = state_->device->compiler();
    if (!compiler)
      throw Error(Code::kUnsupported,
                  fmt::format("{} has no compiler, and the kernel is not in the cache '{}'",
                              state_->device->spec().id, state_->folder));
    const double begin = monotonic_us();
    try {
      built.binary = std::make_shared<artifact::KernelBinary>(compiler->compile(source));
    } catch (const Error& error) {
      if (error.code() == Code::kCompileFailed) slot->failure = error.what();
      throw;
    }
    built.program = state_->device->load(*built.binary, source.kernels);
    built.build_ms = (monotonic_us() - begin) * 1e-3;
    built.was_cached = false;
    state_->save(key, *built.binary);
  }
  slot->program = built.program;
  slot->binary = built.binary;
  state_->keep(built);
  return built;
}

bool KernelCache::has(const artifact::KernelSource& source) const {
  std::error_code ignored;
  return !state_->folder.empty() && fs::exists(state_->path_of(state_->key_of(source)), ignored);
}
void KernelCache::put(const artifact::KernelSource& source, const artifact::KernelBinary& binary) {
  state_->save(state_->key_of(source), binary);
}
const std::string& KernelCache::folder() const { return state_->folder; }

namespace {

struct File {
  fs::path path;
  int64_t bytes;
  fs::file_time_type used;
};

// Entries, and what a killed process left beside them: only files whose name carries the suffix.
std::vector<File> list_files(const std::string& folder) {
  std::vector<File> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, failed),
       end;
       !failed && it != end; it.increment(failed)) {
    std::error_code gone;  // another process may prune too
    if (!it->is_regular_file(gone) || it->path().filename().string().find(kSuffix) == std::string::npos)
      continue;
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    const auto used = it->last_write_time(gone);
    if (!gone) files.push_back({it->path(), bytes, used});
  }
  return files;
}

}  // namespace

KernelCache::Statistics KernelCache::statistics(const std::string& folder) {
  Statistics statistics;
  for (const File& file : list_files(folder)) {
    ++statistics.entries;
    statistics.bytes += file.bytes;
  }
  return statistics;
}

int64_t KernelCache::prune(const std::string& folder, int64_t max_bytes) {
  std::vector<File> files = list_files(folder);
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  int64_t held = 0, freed = 0;
  for (const File& file : files) held += file.bytes;
  for (const File& file : files) {
    if (held - freed <= max_bytes) break;
    std::error_code failed;
    if (fs::remove(file.path, failed)) freed += file.bytes;
  }
  return freed;
}

}  // namespace thrice::jit
