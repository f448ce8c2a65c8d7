// A release: everything that serving needs in one immutable file. Runs without a compiler where a binary for
// the device's architecture is inside. Sections: manifest (JSON), graph (JSON), plan (JSON), weights (raw,
// each tensor at a multiple of 64), binaries (raw), sources (zstd: JSON list; kept so that another device of
// the same language can be served after a rebuild, and for explain).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "artifact/manifest.h"
#include "artifact/plan.h"
#include "ir/graph.h"

namespace thrice::release {

struct Release {
  artifact::Manifest manifest;  // `binaries` and digests are filled by write_release
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<const artifact::Plan> plan;
  std::vector<artifact::KernelSource> sources;
  std::vector<artifact::KernelBinary> binaries;
};

// Atomic. The same release gives the same bytes. Errors: kIo.
void write_release(const std::string& path, Release release);
// Errors: kNotFound, kIo, kCorrupt, kUnsupported.
Release read_release(const std::string& path);
Release parse_release(std::vector<std::byte> bytes, const std::string& name);

}  // namespace thrice::release
