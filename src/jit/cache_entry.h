// The file form of one built kernel: magic, checksum, fields. A file that differs in any bit is no entry.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "artifact/kernel.h"

namespace thrice::jit {

std::vector<std::byte> write_entry(const artifact::KernelBinary& binary);
// nullopt: damaged, truncated, or of another version.
std::optional<artifact::KernelBinary> read_entry(std::span<const std::byte> bytes);

}  // namespace thrice::jit
