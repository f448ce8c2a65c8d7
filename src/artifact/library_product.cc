#include "artifact/library_product.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace thrice::artifact {

namespace {

constexpr const char* kName = "cublaslt";
constexpr size_t kFields = 8;

[[noreturn]] void refuse(const std::string& symbol, const std::string& why) {
  throw Error(Code::kCorrupt, fmt::format("'{}' describes no library product: {}", symbol, why));
}

int position(const std::string& symbol, const std::string& field) {
  constexpr size_t kMostDigits = 4;
  if (field.empty() || field.size() > kMostDigits ||
      !std::all_of(field.begin(), field.end(), [](char c) { return c >= '0' && c <= '9'; }))
    refuse(symbol, fmt::format("'{}' is no position of a buffer", field));
  return std::stoi(field);
}

}  // namespace

std::string LibraryProduct::symbol() const {
  return fmt::format("{}:{}:{}:{}{}:{}:{}:{}:{}", kName, dtype_name(dtype), dtype_name(result),
                     trans_a ? 't' : 'n', trans_b ? 't' : 'n', a, b, product, workspace);
}

std::optional<LibraryProduct> LibraryProduct::parse(const std::string& symbol) {
  if (symbol.find(':') == std::string::npos) return std::nullopt;
  std::vector<std::string> fields;
  std::istringstream text(symbol);
  for (std::string field; std::getline(text, field, ':');) fields.push_back(field);
  if (fields.size() != kFields || fields[0] != kName)
    refuse(symbol, fmt::format("expected {} and 7 more fields", kName));
  LibraryProduct p;
  try {
    p.dtype = parse_dtype(fields[1]);
    p.result = parse_dtype(fields[2]);
  } catch (const Error& error) {
    refuse(symbol, error.what());
  }
  const bool is_short = p.dtype == DType::kF16 || p.dtype == DType::kBF16;
  if (!is_short && p.dtype != DType::kF32 && p.dtype != DType::kF64) refuse(symbol, "not a float product");
  if (p.result != p.dtype && !(is_short && p.result == DType::kF32))
    refuse(symbol, "no library writes this type of result");
  if (fields[3].size() != 2 || fields[3].find_first_not_of("nt") != std::string::npos)
    refuse(symbol, "transposes are nn, nt, tn or tt");
  p.trans_a = fields[3][0] == 't';
  p.trans_b = fields[3][1] == 't';
  p.a = position(symbol, fields[4]);
  p.b = position(symbol, fields[5]);
  p.product = position(symbol, fields[6]);
  p.workspace = position(symbol, fields[7]);
  return p;
}

}  // namespace thrice::artifact
