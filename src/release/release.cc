#include "release/release.h"

#include <fmt/format.h>
#include <thrice/status.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "ir/serialize.h"
#include "release/container.h"

namespace thrice::release {

using json = nlohmann::json;

namespace {

constexpr size_t kTensorAlignment = 64;
constexpr size_t kMaxSourceBytes = size_t{256}
                                   << 20;  // of all kernel texts unpacked; real releases have a few MiB

std::vector<std::byte> to_bytes(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}
std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> compress(const std::string& text) {
  std::vector<std::byte> out(ZSTD_compressBound(text.size()));
  constexpr int kLevel = 3;  // nine times as fast as level 9, a few per cent larger
  const size_t n = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), kLevel);
  if (ZSTD_isError(n)) throw Error(Code::kInternal, fmt::format("zstd: {}", ZSTD_getErrorName(n)));
  out.resize(n);
  return out;
}
std::string decompress(std::span<const std::byte> bytes, const std::string& section) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMaxSourceBytes)
    throw Error(Code::kCorrupt,
                fmt::format("release: section '{}' does not unpack to a sensible size", section));
  std::string text(static_cast<size_t>(size), '\0');
  const size_t n = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(n) || n != text.size())
    throw Error(Code::kCorrupt, fmt::format("release: section '{}' does not unpack", section));
  return text;
}

// A string is its length in four bytes, little-endian, and its bytes.
void add_string(const std::string& text, std::vector<std::byte>& to) {
  if (text.size() > UINT32_MAX)
    throw Error(Code::kUnsupported, "a string constant of 4 GiB or more does not fit into a release");
  for (int i = 0; i < 4; ++i) to.push_back(static_cast<std::byte>(text.size() >> (8 * i)));
  const std::vector<std::byte> bytes = to_bytes(text);
  to.insert(to.end(), bytes.begin(), bytes.end());
}
ir::Tensor read_strings(const std::vector<int64_t>& shape, std::span<const std::byte> bytes) {
  const auto cut_off = [] { return Error(Code::kCorrupt, "release: a string constant is cut off"); };
  const int64_t count = ir::num_elements(shape);
  if (static_cast<uint64_t>(count) > bytes.size() / 4) throw cut_off();  // before memory is taken
  std::vector<std::string> values;
  for (int64_t n = 0; n < count; ++n) {
    if (bytes.size() < 4) throw cut_off();
    size_t size = 0;
    for (size_t i = 0; i < 4; ++i) size |= static_cast<size_t>(bytes[i]) << (8 * i);
    bytes = bytes.subspan(4);
    if (bytes.size() < size) throw cut_off();
    values.push_back(to_text(bytes.first(size)));
    bytes = bytes.subspan(size);
  }
  return ir::Tensor::strings(shape, std::move(values));
}

// The tensors' bytes as they lie, aligned by zeros; packed strings are kept in `strings`.
std::string weights_index(const std::vector<ir::Tensor>& tensors, Pieces& weights,
                          std::deque<std::vector<std::byte>>& strings) {
  static constexpr std::array<std::byte, kTensorAlignment> kZeros{};
  json list = json::array();
  size_t size = 0;
  const auto add = [&](std::span<const std::byte> piece) {
    weights.push_back(piece);
    size += piece.size();
  };
  for (const ir::Tensor& t : tensors) {
    add({kZeros.data(), (kTensorAlignment - size % kTensorAlignment) % kTensorAlignment});
    list.push_back({{"dtype", dtype_name(t.dtype())}, {"shape", t.shape()}, {"offset", size}});
    if (t.dtype() == DType::kString) {
      std::vector<std::byte>& packed = strings.emplace_back();
      for (const std::string& text : t.string_values()) add_string(text, packed);
      add(packed);
    } else {
      add({t.data(), t.bytes()});
    }
  }
  return list.dump();
}

std::vector<ir::Tensor> read_weights(const std::string& index, const Container& container) {
  const std::span<const std::byte> bytes = container.section("weights");
  std::vector<ir::Tensor> tensors;
  for (const json& entry : json::parse(index)) {
    const DType dtype = parse_dtype(entry.at("dtype").get<std::string>());
    const auto shape = entry.at("shape").get<std::vector<int64_t>>();
    const uint64_t offset = entry.at("offset");
    if (dtype == DType::kString && offset <= bytes.size()) {
      tensors.push_back(read_strings(shape, bytes.subspan(static_cast<size_t>(offset))));
      continue;
    }
    const int64_t count = ir::num_elements(shape);
    const size_t width = dtype_bytes(dtype);
    if (width == 0 || offset > bytes.size() || static_cast<uint64_t>(count) > (bytes.size() - offset) / width)
      throw Error(Code::kCorrupt, "release: a weight reaches beyond its section");
    tensors.emplace_back(dtype, shape,
                         bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(count) * width),
                         container.bytes);
  }
  return tensors;
}

std::string sources_json(const std::vector<artifact::KernelSource>& sources) {
  json list = json::array();
  for (const auto& s : sources)
    list.push_back({{"language", artifact::language_name(s.language)},
                    {"text", s.text},
                    {"kernels", s.kernels},
                    {"key", s.key}});
  return list.dump();
}

const char* format_name(artifact::BinaryFormat format) {
  switch (format) {
    case artifact::BinaryFormat::kOpenCLBinary:
      return "opencl_binary";
    case artifact::BinaryFormat::kPtx:
      return "ptx";
    case artifact::BinaryFormat::kCubin:
      return "cubin";
    case artifact::BinaryFormat::kNone:
      return "none";
  }
  return "none";
}
artifact::BinaryFormat parse_format(const std::string& name) {
  for (auto format : {artifact::BinaryFormat::kOpenCLBinary, artifact::BinaryFormat::kPtx,
                      artifact::BinaryFormat::kCubin, artifact::BinaryFormat::kNone})
    if (name == format_name(format)) return format;
  throw Error(Code::kCorrupt, fmt::format("release: unknown binary format '{}'", name));
}

Release parse_sections(const Container& container) {
  Release release;
  release.manifest = artifact::Manifest::from_json(to_text(container.section("manifest")));
  release.plan =
      std::make_shared<const artifact::Plan>(artifact::Plan::from_json(to_text(container.section("plan"))));
  if (release.plan->digest() != release.manifest.plan_digest)
    throw Error(Code::kCorrupt, "release: the plan is not the one that the manifest names");
  const std::vector<ir::Tensor> weights =
      read_weights(to_text(container.section("weights_index")), container);
  release.graph =
      std::make_shared<const ir::Graph>(ir::deserialize(to_text(container.section("graph")), weights));
  for (const json& s : json::parse(decompress(container.section("sources"), "sources"))) {
    artifact::KernelSource source;
    source.language = s.at("language") == artifact::language_name(artifact::Language::kCuda)
                          ? artifact::Language::kCuda
                          : artifact::Language::kOpenCL;
    source.text = s.at("text");
    source.kernels = s.at("kernels").get<std::vector<std::string>>();
    source.key = s.at("key");
    release.sources.push_back(std::move(source));
  }
  const std::span<const std::byte> binaries = container.section("binaries");
  for (const artifact::ManifestBinary& b : release.manifest.binaries) {
    if (b.offset < 0 || b.bytes < 0 || static_cast<uint64_t>(b.offset) > binaries.size() ||
        static_cast<uint64_t>(b.bytes) > binaries.size() - static_cast<uint64_t>(b.offset))
      throw Error(Code::kCorrupt, "release: a binary reaches beyond its section");
    artifact::KernelBinary binary;
    binary.format = parse_format(b.format);
    binary.architecture = b.architecture;
    binary.key = b.source_key;
    const auto view = binaries.subspan(static_cast<size_t>(b.offset), static_cast<size_t>(b.bytes));
    binary.bytes.assign(view.begin(), view.end());
    release.binaries.push_back(std::move(binary));
  }
  return release;
}

}  // namespace

void write_release(const std::string& path, Release release) {
  std::vector<std::byte> binaries;
  release.manifest.binaries.clear();
  for (const artifact::KernelBinary& b : release.binaries) {
    release.manifest.binaries.push_back({b.key, format_name(b.format), b.architecture,
                                         static_cast<int64_t>(binaries.size()),
                                         static_cast<int64_t>(b.bytes.size())});
    binaries.insert(binaries.end(), b.bytes.begin(), b.bytes.end());
  }
  const ir::SerializedGraph graph = ir::serialize(*release.graph);
  std::deque<std::vector<std::byte>> strings;
  Sections sections;
  const std::string index = weights_index(graph.constants, sections["weights"], strings);
  const std::string plan = release.plan->to_json(), manifest = release.manifest.to_json();
  const std::vector<std::byte> sources = compress(sources_json(release.sources));
  const auto add = [&](const char* name, const auto& bytes) {
    sections[name] = {std::as_bytes(std::span(bytes.data(), bytes.size()))};
  };
  add("weights_index", index);
  add("graph", graph.json);
  add("plan", plan);
  add("manifest", manifest);
  add("sources", sources);
  add("binaries", binaries);
  write_container(path, sections);
}

Release parse_release(std::vector<std::byte> bytes, const std::string& name) {
  const Container container = parse_container(std::move(bytes), name);
  // The digests hold, so what follows was written by some thrice; whatever still does not fit is told as
  // damage, never as a crash.
  try {
    return parse_sections(container);
  } catch (const json::exception& e) {
    throw Error(Code::kCorrupt, fmt::format("release '{}': {}", name, e.what()));
  } catch (const Error& e) {
    if (e.code() == Code::kUnsupported || e.code() == Code::kCorrupt) throw;
    throw Error(Code::kCorrupt, fmt::format("release '{}': {}", name, e.what()));
  }
}

Release read_release(const std::string& path) { return parse_release(read_file(path), path); }

}  // namespace thrice::release
