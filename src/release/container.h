// The sealed file's outer form: named sections, each with a digest. Knows nothing of what they hold.
//   "THRICE\r\n" version:u32 sections:u32 | per section: name[24] offset:u64 bytes:u64 digest[16] | digest of
//   all that precedes | sections, each at a multiple of 64
// All numbers little-endian. The line break in the magic catches transfers that rewrite text.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace thrice::release {

// What a section holds, as pieces one after another. Views: whoever made them keeps the bytes.
using Pieces = std::vector<std::span<const std::byte>>;
// Sections in order of name; equal contents give equal bytes.
using Sections = std::map<std::string, Pieces>;

// Atomic: writes beside `path` and renames. Errors: kIo (disk full, permission): `path` is as it was.
void write_container(const std::string& path, const Sections& sections);

// A read container: sections are views into `bytes`.
struct Container {
  std::shared_ptr<const std::vector<std::byte>> bytes;
  std::map<std::string, std::span<const std::byte>> sections;
  std::span<const std::byte> section(const std::string& name) const;  // throws kCorrupt when absent
};
// Every digest is checked before anything is used. Errors: kNotFound, kIo, kCorrupt (says which section),
// kUnsupported (newer version).
Container read_container(const std::string& path);
Container parse_container(std::vector<std::byte> bytes, const std::string& name);

}  // namespace thrice::release
