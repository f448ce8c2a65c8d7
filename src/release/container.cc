#include "release/container.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/file.h"
#include "base/hash.h"

namespace thrice::release {

namespace {

constexpr char kMagic[8] = {'T', 'H', 'R', 'I', 'C', 'E', '\r', '\n'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaxSections = 64;  // a release has six; more is damage
constexpr size_t kNameBytes = 24, kDigestBytes = 16, kEntryBytes = kNameBytes + 8 + 8 + kDigestBytes,
                 kHeadBytes = 16;
constexpr size_t kSectionAlignment = 64;  // cache line, and enough for any element type read in place

void put(std::vector<std::byte>& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
uint64_t get(std::span<const std::byte> in, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(in[at + static_cast<size_t>(i)]) << (8 * i);
  return value;
}
size_t align_up(size_t n) { return (n + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment; }

}  // namespace

void write_container(const std::string& path, const Sections& sections) {
  static constexpr std::array<std::byte, kSectionAlignment> kZeros{};
  std::vector<std::byte> head;
  for (char c : kMagic) head.push_back(static_cast<std::byte>(c));
  put(head, kVersion, 4);
  put(head, sections.size(), 4);
  size_t offset = align_up(kHeadBytes + sections.size() * kEntryBytes + kDigestBytes);
  const size_t first = offset;
  Pieces file{{}};  // the head, when it is complete
  for (const auto& [name, pieces] : sections) {
    if (name.size() >= kNameBytes) throw Error(Code::kInternal, "release: section name too long");
    for (size_t i = 0; i < kNameBytes; ++i)
      head.push_back(i < name.size() ? static_cast<std::byte>(name[i]) : std::byte{0});
    size_t size = 0;
    Hasher hasher;
    file.emplace_back(kZeros.data(), align_up(offset) - offset);
    offset = align_up(offset);
    for (const std::span<const std::byte> piece : pieces) {
      hasher.add(piece);
      file.push_back(piece);
      size += piece.size();
    }
    put(head, offset, 8);
    put(head, size, 8);
    for (uint8_t b : hasher.digest()) head.push_back(std::byte{b});
    offset += size;
  }
  const auto head_digest = hash_bytes(head);
  for (uint8_t b : head_digest) head.push_back(std::byte{b});
  head.resize(first);
  file.front() = head;
  write_file_atomic(path, file);
}

std::span<const std::byte> Container::section(const std::string& name) const {
  const auto it = sections.find(name);
  if (it == sections.end())
    throw Error(Code::kCorrupt, fmt::format("release: section '{}' is missing", name));
  return it->second;
}

Container parse_container(std::vector<std::byte> content, const std::string& name) {
  const auto damaged = [&](const std::string& what) {
    return Error(Code::kCorrupt, fmt::format("release '{}' is damaged: {}", name, what));
  };
  Container container;
  container.bytes = std::make_shared<const std::vector<std::byte>>(std::move(content));
  const std::span<const std::byte> bytes = *container.bytes;
  if (bytes.size() < kHeadBytes + kDigestBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    throw Error(
        Code::kCorrupt,
        fmt::format(
            "'{}' is not a thrice release (its first bytes are another format's, or it is cut off); `thrice "
            "optimize` makes one of an ONNX model",
            name));
  if (get(bytes, 8, 4) > kVersion)
    throw Error(
        Code::kUnsupported,
        fmt::format("release '{}' has container version {}, this thrice reads up to {}: update thrice", name,
                    get(bytes, 8, 4), kVersion));
  const uint64_t count = get(bytes, 12, 4);
  if (count > kMaxSections || bytes.size() < kHeadBytes + count * kEntryBytes + kDigestBytes)
    throw damaged("its table of sections is cut off");
  const size_t table_end = kHeadBytes + static_cast<size_t>(count) * kEntryBytes;
  const auto head_digest = hash_bytes(bytes.first(table_end));
  if (std::memcmp(head_digest.data(), bytes.data() + table_end, kDigestBytes) != 0)
    throw damaged("the digest of its table does not match");
  size_t end = table_end + kDigestBytes;
  for (uint64_t s = 0; s < count; ++s) {
    const size_t at = kHeadBytes + static_cast<size_t>(s) * kEntryBytes;
    const char* text = reinterpret_cast<const char*>(bytes.data() + at);
    const std::string section(text, std::find(text, text + kNameBytes, '\0'));
    const uint64_t offset = get(bytes, at + kNameBytes, 8), size = get(bytes, at + kNameBytes + 8, 8);
    if (offset > bytes.size() || size > bytes.size() - offset)
      throw damaged(fmt::format("section '{}' reaches beyond the file (cut off?)", section));
    const auto view = bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
    const auto digest = hash_bytes(view);
    if (std::memcmp(digest.data(), bytes.data() + at + kNameBytes + 16, kDigestBytes) != 0)
      throw damaged(fmt::format("the digest of section '{}' does not match", section));
    container.sections[section] = view;
    end = std::max(end, static_cast<size_t>(offset + size));
  }
  if (bytes.size() != end) throw damaged(fmt::format("{} bytes follow its last section", bytes.size() - end));
  return container;
}

}  // namespace thrice::release
