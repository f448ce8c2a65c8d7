// Fields one after another as bytes, and back: files and messages of our own, of one machine (host byte
// order).
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thrice {

class FieldWriter {
 public:
  std::vector<std::byte> bytes;

  void raw(const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + size);
  }
  void integer(int64_t value) { raw(&value, sizeof(value)); }
  void real(double value) { raw(&value, sizeof(value)); }
  void block(std::span<const std::byte> data) {  // length first
    integer(static_cast<int64_t>(data.size()));
    raw(data.data(), data.size());
  }
  void text(std::string_view value) { block(std::as_bytes(std::span(value.data(), value.size()))); }
  template <class List>
  void integers(const List& values) {
    integer(static_cast<int64_t>(values.size()));
    for (const auto value : values) integer(static_cast<int64_t>(value));
  }
};

// Reads what a FieldWriter wrote; `good` turns false at the first field that does not fit, and stays so: then
// every field is empty or zero. The bytes must outlive the reader.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : rest(bytes) {}
  std::span<const std::byte> rest;
  bool good = true;

  bool complete() const { return good && rest.empty(); }
  std::span<const std::byte> take(size_t size) {
    good = good && size <= rest.size();
    if (!good) return {};
    const auto taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  }
  int64_t integer() { return number<int64_t>(); }
  double real() { return number<double>(); }
  std::span<const std::byte> block() {
    const int64_t size = integer();
    good = good && size >= 0;
    return take(static_cast<size_t>(size));
  }
  std::string text() {
    const auto bytes = block();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  template <class T = int64_t>
  std::vector<T> integers() {
    std::vector<T> values;
    for (int64_t n = integer(); good && n > 0; --n) values.push_back(static_cast<T>(integer()));
    return values;
  }

 private:
  template <class T>
  T number() {
    T value = 0;
    const auto bytes = take(sizeof(value));
    if (good) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
};

}  // namespace thrice
