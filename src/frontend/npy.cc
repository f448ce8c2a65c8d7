#include "frontend/npy.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "frontend/npy_text.h"

namespace thrice::frontend {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
// Real headers have about 100 bytes; the limit keeps a hostile one from being parsed for long.
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;
constexpr size_t kMaxTextWidth = size_t{1} << 30;  // bytes of an element stay far from overflow

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// The header is a Python dictionary literal with three known keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && peek() == '\'') {
        header.descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail(key == "descr" ? "structured types are not supported" : fmt::format("unknown key '{}'", key));
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) fail("descr, fortran_order or shape is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(Code::kInvalidArgument, fmt::format("{}: .npy header: {}", where_, reason));
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(fmt::format("'{}' expected at byte {}", c, at_));
  }
  std::string quoted() {
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) fail("a string is not closed");
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False expected");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> result;
    expect('(');
    while (!take(')')) {
      skip();
      int64_t value = 0;
      const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (code != std::errc() || value < 0) fail("an extent is no number");
      at_ = static_cast<size_t>(end - text_.data());
      take('L');  // Python 2 wrote 3L
      result.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

struct Descr {
  const char* code;  // without the byte order
  DType dtype;
};
constexpr Descr kDescrs[] = {{"f4", DType::kF32}, {"f8", DType::kF64}, {"f2", DType::kF16},
                             {"i1", DType::kI8},  {"i2", DType::kI16}, {"i4", DType::kI32},
                             {"i8", DType::kI64}, {"u1", DType::kU8},  {"u2", DType::kU16},
                             {"u4", DType::kU32}, {"u8", DType::kU64}, {"b1", DType::kBool}};

ir::Tensor from_fortran(const ir::Tensor& stored, const std::vector<int64_t>& shape) {
  ir::Tensor result(stored.dtype(), shape);
  std::byte* out = result.mutable_data();
  const size_t width = dtype_bytes(stored.dtype());
  std::vector<int64_t> index(shape.size(), 0), stride(shape.size(), 1);
  for (size_t a = 1; a < shape.size(); ++a) stride[a] = stride[a - 1] * shape[a - 1];
  int64_t from = 0;
  for (int64_t to = 0; to < result.size(); ++to) {
    std::memcpy(out + static_cast<size_t>(to) * width, stored.data() + static_cast<size_t>(from) * width,
                width);
    for (size_t a = shape.size(); a-- > 0;) {
      from += stride[a];
      if (++index[a] < shape[a]) break;
      from -= stride[a] * shape[a];
      index[a] = 0;
    }
  }
  return result;
}

ir::Tensor portable(const ir::Tensor& tensor) {
  const DType dtype = tensor.dtype();
  const bool has_own =
      std::any_of(std::begin(kDescrs), std::end(kDescrs), [&](const Descr& d) { return d.dtype == dtype; });
  if (has_own) return tensor;
  const DType wide = is_float(dtype) ? DType::kF32 : is_signed_integer(dtype) ? DType::kI8 : DType::kU8;
  ir::Tensor result(wide, tensor.shape());
  result.mutable_data();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (is_float(dtype)) {
      result.set(i, tensor.as_double(i));
    } else {
      result.set_int(i, tensor.as_int(i));
    }
  }
  return result;
}

// Magic, version and header of a file; the data follows.
std::vector<std::byte> begin_file(const std::string& descr, const std::vector<int64_t>& extents) {
  std::string shape;
  for (const int64_t extent : extents) shape += fmt::format("{},", extent);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  header.resize((kMagic.size() + 4 + header.size() + 1 + 63) / 64 * 64 - kMagic.size() - 4 - 1,
                ' ');  // aligns the data
  header += '\n';
  std::string text(kMagic);
  text += '\1';
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

// Characters of an element, from the descr `<U12`; 0 where it is no such type or has no character.
size_t text_width(const std::string& descr) {
  size_t width = 0;
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '>') || descr[1] != 'U') return 0;
  const auto [end, code] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
  return code == std::errc() && end == descr.data() + descr.size() && width <= kMaxTextWidth ? width : 0;
}

}  // namespace

ir::Tensor decode_npy(std::span<const std::byte> bytes, const std::string& where) {
  const auto fail = [&](const std::string& reason) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", where, reason));
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.substr(0, kMagic.size()) != kMagic || text.size() < 10) fail("is no .npy file");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(text[i])); };
  const size_t version = byte(6);
  if (version < 1 || version > 3) fail(fmt::format(".npy version {} is not known", version));
  const size_t begin = version == 1 ? 10 : 12;
  if (text.size() < begin) fail("is truncated in its header");
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeaderBytes) fail(fmt::format("has a header of {} bytes, more than any real one", length));
  if (text.size() - begin < length) fail("is truncated in its header");
  const Header header = HeaderParser(text.substr(begin, length), where).parse();

  const char order = header.descr.empty() ? '?' : header.descr[0];
  const std::string code = header.descr.empty() ? "" : header.descr.substr(1);
  const auto* known =
      std::find_if(std::begin(kDescrs), std::end(kDescrs), [&](const Descr& d) { return code == d.code; });
  const size_t characters = text_width(header.descr);
  if (characters == 0 &&
      (known == std::end(kDescrs) || (order != '<' && order != '>' && order != '|' && order != '='))) {
    fail(fmt::format("holds type '{}'; booleans, integers, floats of 16 to 64 bits and text (U) are read",
                     header.descr));
  }
  const size_t width = characters > 0 ? 4 * characters : dtype_bytes(known->dtype);
  int64_t count = 0;
  try {
    count = ir::num_elements(header.shape);
  } catch (const Error& error) {
    fail(error.what());
  }
  const std::span<const std::byte> data = bytes.subspan(begin + length);
  if (data.size() / width < static_cast<uint64_t>(count) ||
      data.size() != static_cast<size_t>(count) * width) {
    fail(fmt::format("has {} bytes of data where its shape needs {} elements of {} bytes", data.size(), count,
                     width));
  }
  if (characters > 0) {
    if (header.fortran && header.shape.size() > 1) fail("holds text in Fortran order; save it in C order");
    return ir::Tensor::strings(header.shape, decode_npy_text(data, characters, order == '>'));
  }
  ir::Tensor tensor(known->dtype, header.shape);
  std::byte* out = tensor.mutable_data();
  if (!data.empty()) std::memcpy(out, data.data(), data.size());
  if (order == '>') {
    for (size_t i = 0; i < data.size(); i += width) std::reverse(out + i, out + i + width);
  }
  if (known->dtype == DType::kBool) {
    for (size_t i = 0; i < data.size(); ++i) out[i] = static_cast<std::byte>(out[i] != std::byte{0});
  }
  return header.fortran ? from_fortran(tensor, header.shape) : tensor;
}

ir::Tensor read_npy(const std::string& path) {
  const auto bytes = read_file(path);
  return decode_npy(bytes, path);
}

std::vector<std::byte> encode_npy(const ir::Tensor& given) {
  if (given.dtype() == DType::kString) {
    const std::vector<std::string>& texts = given.string_values();
    const size_t width = npy_text_width(texts);
    std::vector<std::byte> bytes = begin_file(fmt::format("<U{}", width), given.shape());
    const size_t begin = bytes.size();
    bytes.resize(begin + texts.size() * width * 4);
    encode_npy_text(texts, width, bytes.data() + begin);
    return bytes;
  }
  const ir::Tensor tensor = portable(given);
  const auto* known = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                   [&](const Descr& d) { return d.dtype == tensor.dtype(); });
  std::vector<std::byte> bytes = begin_file(
      fmt::format("{}{}", dtype_bytes(tensor.dtype()) == 1 ? '|' : '<', known->code), tensor.shape());
  const size_t begin = bytes.size();
  bytes.resize(begin + tensor.bytes());
  if (tensor.bytes() > 0) std::memcpy(bytes.data() + begin, tensor.data(), tensor.bytes());
  return bytes;
}

void write_npy(const std::string& path, const ir::Tensor& tensor) {
  write_file_atomic(path, encode_npy(tensor));
}

}  // namespace thrice::frontend
