// 128-bit content hashes (XXH3): cache keys, structural hashes, digests against damage. Not cryptographic:
// they do not prove origin.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace thrice {

using Digest = std::array<uint8_t, 16>;

Digest hash_bytes(std::span<const std::byte> bytes);
std::string hash_hex(std::span<const std::byte> bytes);  // 32 lower-case hex digits
std::string hash_hex(std::string_view text);
std::string to_hex(const Digest& digest);

// Streaming form. Lengths are hashed with strings, so that ("ab","c") and ("a","bc") differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher& add(std::span<const std::byte> bytes);  // raw, without length
  Hasher& add(std::string_view text);
  Hasher& add(int64_t value);
  Digest digest() const;
  std::string hex() const { return to_hex(digest()); }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thrice
