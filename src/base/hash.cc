#include "base/hash.h"

#include <xxhash.h>

namespace thrice {

namespace {
Digest canonical(XXH128_hash_t hash) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, hash);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = bytes.digest[i];
  return digest;
}
}  // namespace

Digest hash_bytes(std::span<const std::byte> bytes) {
  return canonical(XXH3_128bits(bytes.data(), bytes.size()));
}
std::string hash_hex(std::span<const std::byte> bytes) { return to_hex(hash_bytes(bytes)); }
std::string hash_hex(std::string_view text) {
  return hash_hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::string to_hex(const Digest& digest) {
  static const char* kDigits = "0123456789abcdef";
  std::string text;
  for (uint8_t b : digest) {
    text += kDigits[b >> 4];
    text += kDigits[b & 15];
  }
  return text;
}

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Hasher::~Hasher() = default;
Hasher& Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}
Hasher& Hasher::add(std::string_view text) {
  add(static_cast<int64_t>(text.size()));
  return add(std::as_bytes(std::span(text.data(), text.size())));
}
Hasher& Hasher::add(int64_t value) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  return add(std::as_bytes(std::span(bytes)));
}
Digest Hasher::digest() const { return canonical(XXH3_128bits_digest(state_->xxh)); }

}  // namespace thrice
