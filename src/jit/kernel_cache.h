// KernelSource -> loaded Program, through a cache on disk and one in memory.
#pragma once
#include <memory>
#include <string>

#include "artifact/kernel.h"
#include "backend/backend.h"

namespace thrice::jit {

// Key of an entry = source key + device key + compiler version + build options + product schema. Entries are
// written to a temporary name and renamed, with a checksum: a bad entry is a miss and is overwritten. Two
// processes may share the folder; two threads that ask for one key build it once.
class KernelCache {
 public:
  KernelCache(backend::DevicePtr device, std::string folder);  // folder "" = in memory only
  ~KernelCache();

  struct Built {
    backend::ProgramPtr program;
    std::shared_ptr<const artifact::KernelBinary> binary;  // with the compiler's log
    bool was_cached = false;                               // from disk or memory
    double build_ms = 0;                                   // 0 when cached
  };
  // Errors: kCompileFailed; kUnsupported where the device has no compiler and the cache no entry.
  Built build(const artifact::KernelSource& source);

  // On disk already, unless the entry turns out to be damaged.
  bool has(const artifact::KernelSource& source) const;
  // What a builder elsewhere made of `source` for this very device and compiler; onto the disk only.
  void put(const artifact::KernelSource& source, const artifact::KernelBinary& binary);
  const std::string& folder() const;

  struct Statistics {
    int64_t entries = 0, bytes = 0;
  };
  static Statistics statistics(const std::string& folder);
  static int64_t prune(const std::string& folder,
                       int64_t max_bytes);  // least recently used first; returns bytes freed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thrice::jit
