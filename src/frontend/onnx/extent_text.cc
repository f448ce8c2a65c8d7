#include "frontend/onnx/extent_text.h"

#include <thrice/status.h>

#include <cctype>

namespace thrice::frontend::onnx {
namespace {

using ir::Dim;

// Every member gives nullopt where the text is not what it looks for; the whole text is then no expression.
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  std::optional<Dim> whole() {
    const std::optional<Dim> result = sum();
    space();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 32;  // of brackets; exporters write two

  void space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(const char* word) {
    space();
    const size_t length = std::char_traits<char>::length(word);
    if (text_.compare(at_, length, word) != 0) return false;
    at_ += length;
    return true;
  }

  std::optional<Dim> sum() {
    std::optional<Dim> left = product();
    while (left) {
      const bool plus = take("+");
      if (!plus && !take("-")) break;
      const std::optional<Dim> right = product();
      if (!right) return {};
      left = plus ? *left + *right : *left - *right;
    }
    return left;
  }

  std::optional<Dim> product() {
    std::optional<Dim> left = operand();
    while (left) {
      const bool divides = take("//");
      if (!divides && !take("*")) break;
      const std::optional<Dim> right = operand();
      if (!right || (divides && *right == Dim(0))) return {};
      left = divides ? floor_div(*left, *right) : *left * *right;
    }
    return left;
  }

  std::optional<Dim> operand() {
    if (take("(")) {
      if (++depth_ > kMaxDepth) return {};
      const std::optional<Dim> inner = sum();
      --depth_;
      if (!inner || !take(")")) return {};
      return inner;
    }
    space();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    if (word.empty() || word[0] == '.') return {};
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) return Dim::symbol(word);
    constexpr size_t kMaxDigits = 9;
    if (word.size() > kMaxDigits || word.find_first_not_of("0123456789") != std::string::npos) return {};
    return Dim(std::stoll(word));
  }

  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<Dim> parse_extent(const std::string& text) {
  constexpr size_t kMaxLength = 200;  // longer ones are no work of an exporter
  if (text.size() > kMaxLength) return {};
  try {
    return Parser(text).whole();
  } catch (const Error&) {  // numbers beyond 64 bits
    return {};
  }
}

}  // namespace thrice::frontend::onnx
