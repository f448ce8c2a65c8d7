#include "frontend/npy_text.h"

#include <algorithm>
#include <cstdint>

namespace thrice::frontend {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_character(char32_t c) { return c < 0xD800 || (c > 0xDFFF && c <= 0x10FFFF); }

std::u32string from_utf8(const std::string& text) {
  constexpr char32_t kLeast[] = {0, 0x80, 0x800,
                                 0x10000};  // by number of continuation bytes: shorter forms only
  std::u32string result;
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned char first = byte(i);
    const size_t more = first < 0x80       ? 0
                        : first >> 5 == 6  ? 1
                        : first >> 4 == 14 ? 2
                        : first >> 3 == 30 ? 3
                                           : 4;
    char32_t c = more == 0 ? first : first & (0x3Fu >> more);
    size_t seen = 0;
    while (more < 4 && seen < more && i + 1 + seen < text.size() && byte(i + 1 + seen) >> 6 == 2)
      c = c << 6 | (byte(i + 1 + seen++) & 0x3F);
    const bool is_good = more < 4 && seen == more && c >= kLeast[more] && is_character(c);
    result += is_good ? c : kReplacement;
    i += is_good ? 1 + more : 1;
  }
  return result;
}

void append_utf8(std::string& text, char32_t c) {
  if (!is_character(c)) c = kReplacement;
  const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned char kLead[] = {0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[more] | c >> (6 * more));
  for (int k = more; k-- > 0;) text += static_cast<char>(0x80 | (c >> (6 * k) & 0x3F));
}

}  // namespace

size_t npy_text_width(const std::vector<std::string>& utf8) {
  size_t width = 1;
  for (const std::string& text : utf8) width = std::max(width, from_utf8(text).size());
  return width;
}

void encode_npy_text(const std::vector<std::string>& utf8, size_t width, std::byte* out) {
  std::fill_n(out, utf8.size() * width * 4, std::byte{0});
  for (size_t i = 0; i < utf8.size(); ++i) {
    std::byte* at = out + i * width * 4;
    for (const char32_t c : from_utf8(utf8[i]))
      for (int k = 0; k < 4; ++k) *at++ = static_cast<std::byte>(c >> (8 * k) & 0xFF);
  }
}

std::vector<std::string> decode_npy_text(std::span<const std::byte> data, size_t width, bool is_big_endian) {
  std::vector<std::string> result;
  for (size_t at = 0; at + width * 4 <= data.size() && width > 0; at += width * 4) {
    std::u32string text;
    for (size_t k = 0; k < width; ++k) {
      char32_t c = 0;
      for (size_t b = 0; b < 4; ++b)
        c |= static_cast<char32_t>(data[at + 4 * k + b]) << (8 * (is_big_endian ? 3 - b : b));
      text += c;
    }
    text.erase(text.find_last_not_of(U'\0') + 1);
    std::string utf8;
    for (const char32_t c : text) append_utf8(utf8, c);
    result.push_back(std::move(utf8));
  }
  return result;
}

}  // namespace thrice::frontend
