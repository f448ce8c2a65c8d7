#include "jit/cache_entry.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace thrice::jit {
namespace {

constexpr std::string_view kMagic = "thrice kernel 1\n";
constexpr size_t kHead = kMagic.size() + sizeof(Digest);

void put(std::vector<std::byte>& out, const void* data, size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  out.insert(out.end(), from, from + bytes);
}
void put_int(std::vector<std::byte>& out, int64_t value) { put(out, &value, sizeof(value)); }
void put_block(std::vector<std::byte>& out, const void* data, size_t bytes) {
  put_int(out, static_cast<int64_t>(bytes));
  put(out, data, bytes);
}

// Reads what write_entry wrote; `good` turns false at the first field that does not fit, and stays so.
struct Reader {
  std::span<const std::byte> rest;
  bool good = true;

  std::span<const std::byte> take(size_t bytes) {
    good = good && bytes <= rest.size();
    if (!good) return {};
    const auto taken = rest.first(bytes);
    rest = rest.subspan(bytes);
    return taken;
  }
  int64_t integer() {
    int64_t value = 0;
    const auto bytes = take(sizeof(value));
    if (good) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  std::span<const std::byte> block() {
    const int64_t bytes = integer();
    good = good && bytes >= 0;
    return take(static_cast<size_t>(bytes));
  }
  std::string text() {
    const auto bytes = block();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

}  // namespace

std::vector<std::byte> write_entry(const artifact::KernelBinary& binary) {
  std::vector<std::byte> body;
  put_int(body, static_cast<int64_t>(binary.format));
  for (const std::string* text : {&binary.architecture, &binary.key, &binary.log})
    put_block(body, text->data(), text->size());
  for (int number : {binary.registers, binary.spill_bytes, binary.static_shared_bytes}) put_int(body, number);
  put_block(body, binary.bytes.data(), binary.bytes.size());
  std::vector<std::byte> out;
  out.reserve(kHead + body.size());
  const Digest digest = hash_bytes(body);
  put(out, kMagic.data(), kMagic.size());
  put(out, digest.data(), digest.size());
  put(out, body.data(), body.size());
  return out;
}

std::optional<artifact::KernelBinary> read_entry(std::span<const std::byte> bytes) {
  if (bytes.size() < kHead || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) return {};
  const auto body = bytes.subspan(kHead);
  const Digest digest = hash_bytes(body);
  if (std::memcmp(bytes.data() + kMagic.size(), digest.data(), digest.size()) != 0) return {};
  Reader reader{body};
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
  if (!reader.good || !reader.rest.empty()) return {};
  return binary;
}

}  // namespace thrice::jit
