// Catches transposed Fortran arrays, unswapped bytes, headers that NumPy would not read.
#include "frontend/npy.h"

#include <gtest/gtest.h>
#include <thrice/status.h>

namespace thrice::frontend {
namespace {

std::vector<std::byte> file(const std::string& header, const std::string& data, char version = 1) {
  std::string all("\x93NUMPY", 6);
  all += version;
  all += '\0';
  all += static_cast<char>(header.size() & 0xff);
  all += static_cast<char>(header.size() >> 8);
  if (version > 1) all += std::string(2, '\0');
  all += header + data;
  const auto view = std::as_bytes(std::span(all));
  return {view.begin(), view.end()};
}

TEST(Npy, RoundTrip) {
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kF16, DType::kI64, DType::kI8, DType::kU16, DType::kBool}) {
    const ir::Tensor t = ir::Tensor::of<int>(dtype, {2, 3}, {0, 1, 1, 0, 1, 0});
    const ir::Tensor back = decode_npy(encode_npy(t), "memory");
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), t.shape());
    for (int64_t i = 0; i < t.size(); ++i) EXPECT_EQ(back.as_double(i), t.as_double(i));
  }
  EXPECT_EQ(encode_npy(ir::Tensor::scalar(DType::kF32, 1)).size() % 64,
            4u);  // data begins at a multiple of 64
  EXPECT_EQ(decode_npy(encode_npy(ir::Tensor(DType::kF32, {0, 4})), "memory").size(), 0);
  EXPECT_EQ(decode_npy(encode_npy(ir::Tensor::scalar(DType::kBF16, 1.5)), "memory").dtype(), DType::kF32);
}

TEST(Npy, Text) {
  const std::vector<std::string> words = {"", "abc", "\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x99\x82",
                                          "a b"};  // 2, 3 and 4 bytes
  const std::vector<std::byte> bytes = encode_npy(ir::Tensor::strings({2, 2}, words));
  EXPECT_EQ(bytes.size() % 64, 4 * 3 * 4u) << "four elements of three characters of four bytes";
  const ir::Tensor back = decode_npy(bytes, "memory");
  EXPECT_EQ(back.shape(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(back.string_values(), words);
  EXPECT_EQ(decode_npy(encode_npy(ir::Tensor::strings({0}, {})), "memory").size(), 0);
  // Cut, overlong and foreign bytes, a surrogate, and zeros at the end, which the type cannot hold.
  const auto one = [](const std::string& text) {
    return decode_npy(encode_npy(ir::Tensor::strings({1}, {text})), "memory").string_values()[0];
  };
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(one("a\xC3"), "a" + bad);
  EXPECT_EQ(one("\xC0\x80z"), bad + bad + "z");
  EXPECT_EQ(one("\xFF"), bad);
  EXPECT_EQ(one("\xED\xA0\x80"), bad + bad + bad);
  EXPECT_EQ(one(std::string("a\0b\0", 4)), std::string("a\0b", 3));
  const ir::Tensor big = decode_npy(file("{'descr': '>U1', 'fortran_order': False, 'shape': (2,), }\n",
                                         std::string("\0\0\0A\x7F\xFF\xFF\xFF", 8)),
                                    "memory");
  EXPECT_EQ(big.string_values(), (std::vector<std::string>{"A", bad}));
}

TEST(Npy, FortranOrderAndBigEndian) {
  const ir::Tensor f = decode_npy(
      file("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n", std::string("\1\4\2\5\3\6", 6)),
      "memory");
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(f.as_int(i), i + 1);
  const ir::Tensor b = decode_npy(
      file("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", std::string("\0\1\1\0", 4), 2),
      "memory");
  EXPECT_EQ(b.as_int(0), 1);
  EXPECT_EQ(b.as_int(1), 256);
}

TEST(Npy, RefusesWhatItCannotRead) {
  const auto refuses = [](const std::vector<std::byte>& bytes) {
    try {
      decode_npy(bytes, "memory");
    } catch (const Error& error) {
      return error.code() == Code::kInvalidArgument;
    }
    return false;
  };
  EXPECT_TRUE(refuses({}));
  EXPECT_TRUE(refuses(file("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }\n", "abc")));
  EXPECT_TRUE(refuses(file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", "too long")));
  EXPECT_TRUE(refuses(file("{'descr': '|O', 'fortran_order': False, 'shape': (), }\n", "")));
  EXPECT_TRUE(refuses(file("{'descr': [('a','<f4')], 'fortran_order': False, 'shape': (), }\n", "abcd")));
  EXPECT_TRUE(refuses(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", "")));
  EXPECT_TRUE(
      refuses(file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n", "")));
  EXPECT_TRUE(refuses(file("{'descr': '<f4", "")));
  for (const char* type : {"<U0", "<U", "<U1x", "|U1", "<U99999999999999999999", "<U4000000000", "|S4"})
    EXPECT_TRUE(refuses(
        file("{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': (1,), }\n", "abcd")))
        << type;
  EXPECT_TRUE(refuses(file("", "")));
}

}  // namespace
}  // namespace thrice::frontend
