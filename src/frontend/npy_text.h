// Strings in .npy files: NumPy's fixed-width text (`<U8`), four bytes a character, shorter strings filled up
// with zeros.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace thrice::frontend {

// Characters of each element of type `<U`: the longest string's, at least one.
size_t npy_text_width(const std::vector<std::string>& utf8);
// strings.size() * width * 4 bytes, little endian. Bytes that are no UTF-8 become U+FFFD; as NumPy's type has
// no length of its own, zeros at the end of a string are lost.
void encode_npy_text(const std::vector<std::string>& utf8, size_t width, std::byte* out);
// The reverse; `data` holds whole elements. Characters that Unicode does not have become U+FFFD.
std::vector<std::string> decode_npy_text(std::span<const std::byte> data, size_t width, bool is_big_endian);

}  // namespace thrice::frontend
