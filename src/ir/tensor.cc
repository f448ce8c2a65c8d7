#include "ir/tensor.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <cstdlib>
#include <cstring>

namespace thrice::ir {
namespace {

template <class T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}
template <class T, class V>
void store(std::byte* p, V value) {
  const T narrowed = static_cast<T>(value);
  std::memcpy(p, &narrowed, sizeof(T));
}

// calloc: pages of a large zero tensor are not touched until they are written.
std::shared_ptr<void> allocate_zeroed(size_t bytes) {
  void* p = std::calloc(bytes ? bytes : 1, 1);
  if (!p)
    throw Error(Code::kOutOfMemory, fmt::format("host memory: {} bytes for one tensor were refused", bytes));
  return {p, std::free};
}

size_t checked_bytes(DType dtype, int64_t elements) {
  // Half the address space of current machines; beyond it calloc's answer is not to be trusted under
  // overcommit.
  constexpr uint64_t kMostBytes = uint64_t{1} << 46;
  const uint64_t width = dtype_bytes(dtype);
  if (width && static_cast<uint64_t>(elements) > kMostBytes / width)
    throw Error(
        Code::kOutOfMemory,
        fmt::format("host memory: a tensor of {} elements of {} bytes is too large", elements, width));
  return static_cast<size_t>(static_cast<uint64_t>(elements) * width);
}

int64_t clamp_to_int64(double value) {
  if (!(value == value)) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value <= -9223372036854775808.0) return INT64_MIN;
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t num_elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      throw Error(Code::kInvalidModel, fmt::format("a shape has the negative extent {}", extent));
    if (extent == 0) empty = true;
  }
  if (empty) return 0;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count))
      throw Error(Code::kInvalidModel, "the number of elements of a shape does not fit 64 bits");
  return count;
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
  size_ = num_elements(shape_);
  const size_t bytes = checked_bytes(dtype, size_);
  auto memory = allocate_zeroed(bytes);
  bytes_ = {static_cast<const std::byte*>(memory.get()), bytes};
  owner_ = std::move(memory);
  if (dtype == DType::kString)
    strings_ = std::make_shared<const std::vector<std::string>>(static_cast<size_t>(size_));
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes,
               std::shared_ptr<const void> owner)
    : dtype_(dtype), shape_(std::move(shape)), bytes_(bytes), owner_(std::move(owner)), borrowed_(true) {
  size_ = num_elements(shape_);
  if (checked_bytes(dtype, size_) != bytes.size())
    throw Error(Code::kInvalidModel, fmt::format("a tensor of {} {} elements was given {} bytes", size_,
                                                 dtype_name(dtype), bytes.size()));
}

Tensor Tensor::strings(std::vector<int64_t> shape, std::vector<std::string> values) {
  Tensor t(DType::kString, std::move(shape));
  if (static_cast<size_t>(t.size_) != values.size())
    throw Error(Code::kInvalidModel,
                fmt::format("a string tensor of {} elements was given {}", t.size_, values.size()));
  t.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  return t;
}

Tensor Tensor::ints(std::vector<int64_t> values) {
  return of(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

Tensor Tensor::scalar(DType dtype, double value) {
  Tensor t(dtype, {});
  t.set(0, value);
  return t;
}

std::byte* Tensor::mutable_data() {
  if (borrowed_ || owner_.use_count() != 1) {
    auto memory = allocate_zeroed(bytes_.size());
    if (!bytes_.empty()) std::memcpy(memory.get(), bytes_.data(), bytes_.size());
    bytes_ = {static_cast<const std::byte*>(memory.get()), bytes_.size()};
    owner_ = std::move(memory);
    borrowed_ = false;
  }
  return const_cast<std::byte*>(bytes_.data());  // sole owner of memory that was allocated writable
}

const std::vector<std::string>& Tensor::string_values() const {
  if (!strings_)
    throw Error(Code::kInternal, fmt::format("a tensor of {} has no string values", dtype_name(dtype_)));
  return *strings_;
}

double Tensor::as_double(int64_t i) const {
  const std::byte* p = bytes_.data() + static_cast<size_t>(i) * dtype_bytes(dtype_);
  switch (dtype_) {
    case DType::kF32:
      return static_cast<double>(load<float>(p));
    case DType::kF64:
      return load<double>(p);
    case DType::kF16:
      return f16_to_double(load<uint16_t>(p));
    case DType::kBF16:
      return bf16_to_double(load<uint16_t>(p));
    case DType::kU64:
      return static_cast<double>(load<uint64_t>(p));
    default:
      break;
  }
  if (is_float(dtype_)) return small_float_to_double(dtype_, load<uint8_t>(p));
  return static_cast<double>(as_int(i));
}

int64_t Tensor::as_int(int64_t i) const {
  const std::byte* p = bytes_.data() + static_cast<size_t>(i) * dtype_bytes(dtype_);
  switch (dtype_) {
    case DType::kI64:
      return load<int64_t>(p);
    case DType::kI32:
      return load<int32_t>(p);
    case DType::kI16:
      return load<int16_t>(p);
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return load<int8_t>(p);
    case DType::kU64:
      return static_cast<int64_t>(load<uint64_t>(p));
    case DType::kU32:
      return load<uint32_t>(p);
    case DType::kU16:
      return load<uint16_t>(p);
    case DType::kU8:
    case DType::kU4:
    case DType::kU2:
      return load<uint8_t>(p);
    case DType::kBool:
      return load<uint8_t>(p) != 0;
    case DType::kString:
      throw Error(Code::kInternal, "a string tensor was read as numbers");
    default:
      return clamp_to_int64(as_double(i));
  }
}

void Tensor::set(int64_t i, double value) {
  std::byte* p = const_cast<std::byte*>(bytes_.data()) + static_cast<size_t>(i) * dtype_bytes(dtype_);
  switch (dtype_) {
    case DType::kF32:
      return store<float>(p, value);
    case DType::kF64:
      return store<double>(p, value);
    case DType::kF16:
      return store<uint16_t>(p, f16_from_double(value));
    case DType::kBF16:
      return store<uint16_t>(p, bf16_from_double(value));
    case DType::kBool:
      return store<uint8_t>(p, value != 0);
    case DType::kU64:
      if (value >= 9223372036854775808.0)
        return store<uint64_t>(p,
                               value >= 18446744073709551616.0 ? UINT64_MAX : static_cast<uint64_t>(value));
      break;
    default:
      break;
  }
  if (is_float(dtype_)) return store<uint8_t>(p, small_float_from_double(dtype_, value, false));
  set_int(i, clamp_to_int64(value));
}

void Tensor::set_int(int64_t i, int64_t value) {
  std::byte* p = const_cast<std::byte*>(bytes_.data()) + static_cast<size_t>(i) * dtype_bytes(dtype_);
  if (is_float(dtype_)) return set(i, static_cast<double>(value));
  if (dtype_ == DType::kString) throw Error(Code::kInternal, "a number was stored into a string tensor");
  const int64_t wrapped = wrap_to(dtype_, value);
  switch (dtype_bytes(dtype_)) {
    case 8:
      return store<int64_t>(p, wrapped);
    case 4:
      return store<uint32_t>(p, wrapped);
    case 2:
      return store<uint16_t>(p, wrapped);
    default:
      return store<uint8_t>(p, wrapped);
  }
}

Tensor Tensor::reshaped(std::vector<int64_t> shape) const {
  if (num_elements(shape) != size_)
    throw Error(Code::kInvalidModel, fmt::format("a tensor of {} elements cannot be seen as {} elements",
                                                 size_, num_elements(shape)));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

}  // namespace thrice::ir
