// A tensor on the host: dtype, concrete shape, row-major bytes. Copies share the bytes.
#pragma once
#include <thrice/dtype.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace thrice::ir {

int64_t num_elements(
    const std::vector<int64_t>& shape);  // throws kInvalidModel on overflow or a negative extent

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype,
         std::vector<int64_t> shape);  // zero-filled; throws kOutOfMemory with the number of bytes
  // Wraps bytes held elsewhere (a mapped file), kept alive by `owner`. bytes.size() must be num_elements *
  // dtype_bytes.
  Tensor(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes,
         std::shared_ptr<const void> owner);
  static Tensor strings(std::vector<int64_t> shape, std::vector<std::string> values);
  template <class T>
  static Tensor of(DType dtype, std::vector<int64_t> shape,
                   const std::vector<T>& values);   // converts element by element
  static Tensor ints(std::vector<int64_t> values);  // i64 vector
  static Tensor scalar(DType dtype, double value);  // rank 0

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int64_t size() const { return size_; }  // elements
  size_t bytes() const { return bytes_.size(); }
  const std::byte* data() const { return bytes_.data(); }
  std::byte* mutable_data();  // copies first when the bytes are shared or borrowed
  const std::vector<std::string>& string_values() const;

  double as_double(int64_t i) const;  // element i as a number (integers converted)
  int64_t as_int(int64_t i) const;    // floats truncated
  void set(
      int64_t i,
      double value);  // rounds to the dtype; requires mutable_data() to have been called or sole ownership
  void set_int(int64_t i, int64_t value);
  Tensor reshaped(std::vector<int64_t> shape) const;  // same bytes; the counts must agree

 private:
  DType dtype_ = DType::kF32;
  std::vector<int64_t> shape_{0};
  int64_t size_ = 0;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  bool borrowed_ = false;
  std::shared_ptr<const std::vector<std::string>> strings_;
};

template <class T>
Tensor Tensor::of(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  Tensor t(dtype, std::move(shape));
  t.mutable_data();
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_integral_v<T>)
      t.set_int(static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
    else
      t.set(static_cast<int64_t>(i), static_cast<double>(values[i]));
  }
  return t;
}

}  // namespace thrice::ir
