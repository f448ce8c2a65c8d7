// NumPy's .npy files: how users hand tensors to thrice and take them back.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace thrice::frontend {

// Reads formats 1.0 to 3.0, little and big endian, C and Fortran order, bool, integers, floats of 16 to 64
// bits and fixed-width text (">f4" and the like are swapped; Fortran order is transposed, not of text).
// Errors: kInvalidArgument naming the file: truncated, a header that is no such header, complex, object or
// byte-string types, a size that does not match the shape.
ir::Tensor read_npy(const std::string& path);
ir::Tensor decode_npy(std::span<const std::byte> bytes, const std::string& where);

// Writes format 1.0, C order, little endian. bfloat16 and 8-bit and 4-bit types, which NumPy does not have,
// are written as float32 (floats) or int8 / uint8 (integers); strings as fixed-width text (npy_text.h).
// Errors: kIo.
void write_npy(const std::string& path, const ir::Tensor& tensor);
std::vector<std::byte> encode_npy(const ir::Tensor& tensor);

}  // namespace thrice::frontend
