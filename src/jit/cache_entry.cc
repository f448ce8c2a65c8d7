#include "jit/cache_entry.h"

#include <cstring>
#include <utility>

#include "base/fields.h"
#include "base/hash.h"

namespace thrice::jit {
namespace {

constexpr std::string_view kMagic = "thrice kernel 1\n";
constexpr size_t kHead = kMagic.size() + sizeof(Digest);

}  // namespace

std::vector<std::byte> write_entry(const artifact::KernelBinary& binary) {
  FieldWriter body;
  body.integer(static_cast<int64_t>(binary.format));
  for (const std::string* text : {&binary.architecture, &binary.key, &binary.log}) body.text(*text);
  for (int number : {binary.registers, binary.spill_bytes, binary.static_shared_bytes}) body.integer(number);
  body.block(binary.bytes);
  FieldWriter out;
  out.bytes.reserve(kHead + body.bytes.size());
  const Digest digest = hash_bytes(body.bytes);
  out.raw(kMagic.data(), kMagic.size());
  out.raw(digest.data(), digest.size());
  out.raw(body.bytes.data(), body.bytes.size());
  return std::move(out.bytes);
}

std::optional<artifact::KernelBinary> read_entry(std::span<const std::byte> bytes) {
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return {};
  const auto body = bytes.subspan(kHead);
  const Digest digest = hash_bytes(body);
  if (std::memcmp(bytes.data() + kMagic.size(), digest.data(), digest.size()) != 0) return {};
  FieldReader reader(body);
  artifact::KernelBinary binary;
  binary.format = static_cast<artifact::BinaryFormat>(reader.integer());
  binary.architecture = reader.text();
  binary.key = reader.text();
  binary.log = reader.text();
  binary.registers = static_cast<int>(reader.integer());
  binary.spill_bytes = static_cast<int>(reader.integer());
  binary.static_shared_bytes = static_cast<int>(reader.integer());
  const auto data = reader.block();
  binary.bytes.assign(data.begin(), data.end());
  if (!reader.complete()) return {};
  return binary;
}

}  // namespace thrice::jit
