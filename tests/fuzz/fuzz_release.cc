// libFuzzer target of the release loader: any bytes give a release that is ready to run or an Error, never a
// crash, a hang or an internal error. Digests guard a release against damage, not against an author, so the
// target makes them right and the parsers behind them are reached. Two forms of input (tests/fuzz/corpus/
// release): a whole file, whose digests are repaired; or sections as text, each below a line "@@ NAME", of
// which a container is made (insertions then move no offsets; `sources` is packed when it is not yet).
#include <thrice/status.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>

#include "backend/backend.h"
#include "base/hash.h"
#include "flow/build.h"
#include "release/release.h"

namespace {

using Bytes = std::vector<std::byte>;

// The outer form of src/release/container.h.
constexpr size_t kHead = 16, kName = 24, kEntry = 56, kDigest = 16, kAlign = 64;

uint64_t number(const Bytes& bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}
void put(Bytes& bytes, size_t at, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}
void put_digest(Bytes& bytes, size_t at, std::span<const std::byte> of) {
  const auto digest = thrice::hash_bytes(of);
  std::memcpy(bytes.data() + at, digest.data(), kDigest);
}

// The manifest names its plan by a digest of 32 hex digits.
void repair_manifest(std::span<std::byte> manifest, std::string plan) {
  std::string digest;
  try {
    digest = thrice::artifact::Plan::from_json(plan).digest();
  } catch (const thrice::Error&) {
    return;
  }
  const std::string_view text(reinterpret_cast<const char*>(manifest.data()), manifest.size());
  const std::string key = "\"plan_digest\": \"";
  const size_t at = text.find(key);
  if (at != std::string_view::npos && at + key.size() + digest.size() <= text.size())
    std::memcpy(manifest.data() + at + key.size(), digest.data(), digest.size());
}

void repair(Bytes& bytes) {
  const uint64_t sections = bytes.size() < kHead ? 0 : number(bytes, 12, 4);
  if (sections > 64 || bytes.size() < kHead + sections * kEntry + kDigest) return;
  std::map<std::string, std::span<std::byte>> views;
  for (int round = 0; round < 2; ++round) {
    for (size_t at = kHead; at < kHead + sections * kEntry; at += kEntry) {
      const uint64_t offset = number(bytes, at + kName, 8), size = number(bytes, at + kName + 8, 8);
      if (offset > bytes.size() || size > bytes.size() - offset) continue;
      const auto view = std::span(bytes).subspan(offset, size);
      const char* name = reinterpret_cast<const char*>(bytes.data() + at);
      views[std::string(name, strnlen(name, kName))] = view;
      put_digest(bytes, at + kName + 16, view);
    }
    if (round == 0 && views.count("manifest") && views.count("plan"))
      repair_manifest(views["manifest"],
                      {reinterpret_cast<const char*>(views["plan"].data()), views["plan"].size()});
  }
  const size_t end = kHead + sections * kEntry;
  put_digest(bytes, end, std::span(bytes).first(end));
}

Bytes container_of(std::string_view text) {
  std::map<std::string, std::string> sections;
  while (!text.empty()) {
    const size_t line = std::min(text.find('\n'), text.size() - 1);
    const std::string name(text.substr(0, std::min(line, kName)));
    text.remove_prefix(line + 1);
    const size_t next = text.find("\n@@ ");
    sections[name] = text.substr(0, next);
    text.remove_prefix(next == std::string_view::npos ? text.size() : next + 4);
  }
  if (std::string& sources = sections["sources"]; sources.rfind("\x28\xb5\x2f\xfd", 0) != 0) {
    std::string packed(ZSTD_compressBound(sources.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), sources.data(), sources.size(), 1));
    sources = packed;
  }
  Bytes bytes(kHead + sections.size() * kEntry + kDigest);
  std::memcpy(bytes.data(), "THRICE\r\n", 8);
  put(bytes, 8, 1, 4);
  put(bytes, 12, sections.size(), 4);
  size_t at = kHead;
  for (const auto& [name, content] : sections) {
    bytes.resize((bytes.size() + kAlign - 1) / kAlign * kAlign);
    std::memcpy(bytes.data() + at, name.data(), name.size());
    put(bytes, at + kName, bytes.size(), 8);
    put(bytes, at + kName + 8, content.size(), 8);
    const auto* data = reinterpret_cast<const std::byte*>(content.data());
    bytes.insert(bytes.end(), data, data + content.size());
    at += kEntry;
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const thrice::backend::DevicePtr kDevice = thrice::backend::open_device("null:0");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const bool is_text = text.rfind("@@ ", 0) == 0;
  Bytes bytes = is_text ? container_of(text.substr(3)) : Bytes(begin, begin + size);
  for (const bool repaired : {false, true}) {
    if (repaired) repair(bytes);
    try {
      const auto release =
          std::make_shared<const thrice::release::Release>(thrice::release::parse_release(bytes, "fuzz"));
      thrice::exec::make_executable(kDevice, release->graph, release->plan,
                                    thrice::flow::program_source(kDevice, release, nullptr));
    } catch (const thrice::Error& error) {
      if (error.code() == thrice::Code::kInternal) {
        fprintf(stderr, "%s\n", error.what());
        std::abort();
      }
    }
  }
  return 0;
}
