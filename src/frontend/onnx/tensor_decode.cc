#include "frontend/onnx/tensor_decode.h"

#include <fmt/format.h>
#include <onnx_subset.pb.h>
#include <thrice/status.h>

#include <array>
#include <charconv>
#include <cstring>

namespace thrice::frontend::onnx {
namespace {

struct TypeRow {
  int32_t number;
  DType dtype;
};
// Numbers of TensorProto.DataType in the public format.
constexpr std::array<TypeRow, 24> kTypes{{
    {1, DType::kF32},     {2, DType::kU8},          {3, DType::kI8},        {4, DType::kU16},
    {5, DType::kI16},     {6, DType::kI32},         {7, DType::kI64},       {8, DType::kString},
    {9, DType::kBool},    {10, DType::kF16},        {11, DType::kF64},      {12, DType::kU32},
    {13, DType::kU64},    {16, DType::kBF16},       {17, DType::kF8E4M3FN}, {18, DType::kF8E4M3FNUZ},
    {19, DType::kF8E5M2}, {20, DType::kF8E5M2FNUZ}, {21, DType::kU4},       {22, DType::kI4},
    {23, DType::kF4E2M1}, {24, DType::kF8E8M0},     {25, DType::kU2},       {26, DType::kI2},
}};

// Bits of one element as the file packs it.
int packed_bits(DType dtype) {
  switch (dtype) {
    case DType::kI4:
    case DType::kU4:
    case DType::kF4E2M1:
      return 4;
    case DType::kI2:
    case DType::kU2:
      return 2;
    default:
      return static_cast<int>(8 * dtype_bytes(dtype));
  }
}

uint64_t packed_bytes(DType dtype, int64_t count) {
  const int bits = packed_bits(dtype);
  if (bits >= 8) return static_cast<uint64_t>(count) * static_cast<uint64_t>(bits / 8);
  const int64_t each = 8 / bits;
  return static_cast<uint64_t>((count + each - 1) / each);
}

// Element `index` of sub-byte data, low bits first, sign-extended where the type is signed.
uint8_t unpack(DType dtype, const std::byte* data, int64_t index) {
  const int bits = packed_bits(dtype);
  const int64_t each = 8 / bits;
  const auto byte = static_cast<unsigned>(data[index / each]);
  unsigned value =
      (byte >> (static_cast<unsigned>(index % each) * static_cast<unsigned>(bits))) & ((1u << bits) - 1);
  if (is_signed_integer(dtype) && (value >> (bits - 1)) != 0) value |= 0xffu << bits;
  return static_cast<uint8_t>(value);
}

std::vector<int64_t> checked_shape(const google::protobuf::RepeatedField<int64_t>& dims,
                                   const std::string& where) {
  std::vector<int64_t> shape(dims.begin(), dims.end());
  try {
    ir::num_elements(shape);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where, error.what()));
  }
  return shape;
}

int64_t parse_number(const std::string& text, const std::string& key, const std::string& where) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value > static_cast<uint64_t>(INT64_MAX)) {
    throw Error(Code::kInvalidModel,
                fmt::format("{}: external data has {} '{}', which is no valid number below the file size",
                            where, key, text));
  }
  return static_cast<int64_t>(value);
}

// Wraps or copies packed bytes of the file. Borrowed bytes must be aligned for their type.
ir::Tensor from_packed(DType dtype, const std::vector<int64_t>& shape, std::span<const std::byte> bytes,
                       std::shared_ptr<const void> owner) {
  const int64_t count = ir::num_elements(shape);
  if (packed_bits(dtype) < 8) {
    ir::Tensor tensor(dtype, shape);
    auto* out = reinterpret_cast<uint8_t*>(tensor.mutable_data());
    for (int64_t i = 0; i < count; ++i) out[i] = unpack(dtype, bytes.data(), i);
    return tensor;
  }
  if (dtype == DType::kBool) {  // any non-zero byte is true in files; one everywhere else
    ir::Tensor tensor(dtype, shape);
    auto* out = reinterpret_cast<uint8_t*>(tensor.mutable_data());
    for (int64_t i = 0; i < count; ++i) out[i] = bytes[static_cast<size_t>(i)] != std::byte{0};
    return tensor;
  }
  if (bytes.empty()) return ir::Tensor(dtype, shape);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % dtype_bytes(dtype) != 0) {
    ir::Tensor tensor(dtype, shape);
    std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
    return tensor;
  }
  return ir::Tensor(dtype, shape, bytes, std::move(owner));
}

template <class Field>
void check_count(const Field& field, int64_t count, const char* name, const std::string& where) {
  if (field.size() != count) {
    throw Error(Code::kInvalidModel, fmt::format("{}: {} has {} entries where the shape asks for {}", where,
                                                 name, field.size(), count));
  }
}

template <class T, class Field>
ir::Tensor copy_field(DType dtype, const std::vector<int64_t>& shape, const Field& field, const char* name,
                      const std::string& where) {
  const int64_t count = ir::num_elements(shape);
  check_count(field, count, name, where);
  ir::Tensor tensor(dtype, shape);
  auto* out = reinterpret_cast<T*>(tensor.mutable_data());
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(field.Get(static_cast<int>(i)));
  return tensor;
}

// int32_data: one element an entry, except sub-byte types, which are packed into bytes, one byte an entry.
ir::Tensor from_int32(DType dtype, const std::vector<int64_t>& shape, const onnx_format::TensorProto& proto,
                      const std::string& where) {
  const auto& field = proto.int32_data();
  if (packed_bits(dtype) < 8) {
    const int64_t count = ir::num_elements(shape);
    check_count(field, static_cast<int64_t>(packed_bytes(dtype, count)), "int32_data", where);
    std::vector<std::byte> bytes(static_cast<size_t>(field.size()));
    for (int i = 0; i < field.size(); ++i)
      bytes[static_cast<size_t>(i)] = static_cast<std::byte>(field.Get(i));
    return from_packed(dtype, shape, bytes, nullptr);
  }
  switch (dtype_bytes(dtype)) {
    case 1:
      if (dtype == DType::kBool) {
        ir::Tensor tensor = copy_field<uint8_t>(dtype, shape, field, "int32_data", where);
        auto* out = reinterpret_cast<uint8_t*>(tensor.mutable_data());
        for (int64_t i = 0; i < tensor.size(); ++i) out[i] = field.Get(static_cast<int>(i)) != 0;
        return tensor;
      }
      return copy_field<uint8_t>(dtype, shape, field, "int32_data", where);
    case 2:
      return copy_field<uint16_t>(dtype, shape, field, "int32_data", where);
    default:
      return copy_field<int32_t>(dtype, shape, field, "int32_data", where);
  }
}

ir::Tensor from_fields(DType dtype, const std::vector<int64_t>& shape, onnx_format::TensorProto& proto,
                       const std::string& where) {
  switch (dtype) {
    case DType::kF32:
      return copy_field<float>(dtype, shape, proto.float_data(), "float_data", where);
    case DType::kF64:
      return copy_field<double>(dtype, shape, proto.double_data(), "double_data", where);
    case DType::kI64:
      return copy_field<int64_t>(dtype, shape, proto.int64_data(), "int64_data", where);
    case DType::kU64:
      return copy_field<uint64_t>(dtype, shape, proto.uint64_data(), "uint64_data", where);
    case DType::kU32:
      return copy_field<uint32_t>(dtype, shape, proto.uint64_data(), "uint64_data", where);
    case DType::kString: {
      check_count(proto.string_data(), ir::num_elements(shape), "string_data", where);
      return ir::Tensor::strings(shape, {proto.string_data().begin(), proto.string_data().end()});
    }
    default:
      return from_int32(dtype, shape, proto, where);
  }
}

ModelTensor decode_external(const onnx_format::TensorProto& proto, ModelTensor result, ExternalData& external,
                            const std::string& where) {
  std::string location;
  uint64_t offset = 0;
  int64_t length = -1;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = static_cast<uint64_t>(parse_number(entry.value(), "offset", where));
    if (entry.key() == "length") length = parse_number(entry.value(), "length", where);
  }
  if (result.dtype == DType::kString) {
    throw Error(Code::kInvalidModel, fmt::format("{}: strings cannot be stored as external data", where));
  }
  const uint64_t expected = packed_bytes(result.dtype, ir::num_elements(result.shape));
  if (location == kStrippedLocation) {
    if (length >= 0 && static_cast<uint64_t>(length) != expected) {
      throw Error(
          Code::kInvalidModel,
          fmt::format("{}: stripped data of {} bytes, but type and shape need {}", where, length, expected));
    }
    result.stripped = true;
    return result;
  }
  auto slice = external.open(location, offset, length, expected, where);
  result.tensor = from_packed(result.dtype, result.shape, slice.bytes, slice.file);
  return result;
}

}  // namespace

DType dtype_of_onnx(int32_t number, const std::string& where) {
  for (const auto& row : kTypes) {
    if (row.number == number) return row.dtype;
  }
  if (number == 14 || number == 15) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: complex numbers are not supported; export real and imaginary parts apart", where));
  }
  if (number == 27 || number == 28) {
    throw Error(Code::kUnsupported, fmt::format("{}: 6-bit floats are not supported", where));
  }
  throw Error(Code::kInvalidModel, fmt::format("{}: {} is no element type", where, number));
}

int32_t onnx_dtype(DType dtype) {
  for (const auto& row : kTypes) {
    if (row.dtype == dtype) return row.number;
  }
  throw Error(Code::kInternal, "dtype without an ONNX number");
}

ModelTensor decode_tensor(onnx_format::TensorProto& proto, ExternalData& external, const std::string& where) {
  ModelTensor result;
  result.name = proto.name();
  if (proto.has_segment())
    throw Error(Code::kUnsupported, fmt::format("{}: segmented tensors are not supported", where));
  result.dtype = dtype_of_onnx(proto.data_type(), where);
  result.shape = checked_shape(proto.dims(), where);
  if (proto.data_location() == 1) return decode_external(proto, std::move(result), external, where);
  if (!proto.has_raw_data()) {
    result.tensor = from_fields(result.dtype, result.shape, proto, where);
    return result;
  }
  if (result.dtype == DType::kString) {
    throw Error(Code::kInvalidModel, fmt::format("{}: strings cannot be stored as raw data", where));
  }
  const uint64_t expected = packed_bytes(result.dtype, ir::num_elements(result.shape));
  if (proto.raw_data().size() != expected) {
    throw Error(Code::kInvalidModel,
                fmt::format("{}: raw data has {} bytes but type {} and shape need {}", where,
                            proto.raw_data().size(), dtype_name(result.dtype), expected));
  }
  auto owner = std::make_shared<const std::string>(std::move(*proto.mutable_raw_data()));
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(owner->data()), owner->size());
  result.tensor = from_packed(result.dtype, result.shape, bytes, owner);
  return result;
}

ModelTensor decode_sparse_tensor(onnx_format::SparseTensorProto& proto, ExternalData& external,
                                 const std::string& where) {
  // A dense copy is the plainest right answer; a hostile shape must not take the machine's memory.
  constexpr int64_t kMaxDenseElements = int64_t{1} << 28;
  ModelTensor values = decode_tensor(*proto.mutable_values(), external, where + " (values)");
  ModelTensor indices = decode_tensor(*proto.mutable_indices(), external, where + " (indices)");
  const auto invalid = [&](const std::string& reason) {
    throw Error(Code::kInvalidModel, fmt::format("{}: sparse tensor: {}", where, reason));
  };
  if (values.stripped || indices.stripped) invalid("its data was stripped; only dense weights can be filled");
  if (values.dtype == DType::kString) invalid("strings are not supported");
  const std::vector<int64_t> shape = checked_shape(proto.dims(), where);
  const int64_t total = ir::num_elements(shape);
  if (total > kMaxDenseElements) {
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: a sparse tensor of {} elements is too large to be made dense", where, total));
  }
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t count = values.tensor.size();
  const bool linear = indices.shape.size() == 1;
  if (indices.dtype != DType::kI64) invalid("indices must be int64");
  if (values.shape.size() != 1) invalid("values must be a vector");
  if (linear ? indices.shape[0] != count : indices.shape != std::vector<int64_t>{count, rank}) {
    invalid("indices and values do not have the same count");
  }
  ModelTensor result;
  result.name = values.name;
  result.dtype = values.dtype;
  result.shape = shape;
  result.tensor = ir::Tensor(values.dtype, shape);
  std::byte* out = result.tensor.mutable_data();
  const size_t width = dtype_bytes(values.dtype);
  for (int64_t n = 0; n < count; ++n) {
    int64_t flat = 0;
    if (linear) {
      flat = indices.tensor.as_int(n);
      if (flat < 0 || flat >= total) invalid(fmt::format("index {} is out of range", flat));
    } else {
      for (int64_t axis = 0; axis < rank; ++axis) {
        const int64_t index = indices.tensor.as_int(n * rank + axis);
        const int64_t extent = shape[static_cast<size_t>(axis)];
        if (index < 0 || index >= extent) invalid(fmt::format("index {} is out of range", index));
        flat = flat * extent + index;
      }
    }
    std::memcpy(out + static_cast<size_t>(flat) * width,
                values.tensor.data() + static_cast<size_t>(n) * width, width);
  }
  return result;
}

}  // namespace thrice::frontend::onnx
