#include "artifact/library_product.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "artifact/library_symbol.h"

namespace thrice::artifact {

namespace {

constexpr const char* kName = "cublaslt";
constexpr size_t kFields = 8;

}  // namespace

std::string LibraryProduct::symbol() const {
  return fmt::format("{}:{}:{}:{}{}:{}:{}:{}:{}", kName, dtype_name(dtype), dtype_name(result),
                     trans_a ? 't' : 'n', trans_b ? 't' : 'n', a, b, product, workspace);
}

std::optional<LibraryProduct> LibraryProduct::parse(const std::string& symbol) {
  const std::vector<std::string> fields = library_fields(symbol, kName);
  if (fields.empty()) return std::nullopt;
  if (fields.size() != kFields) refuse_symbol(symbol, fmt::format("expected {} and 7 more fields", kName));
  LibraryProduct p;
  try {
    p.dtype = parse_dtype(fields[1]);
    p.result = parse_dtype(fields[2]);
  } catch (const Error& error) {
    refuse_symbol(symbol, error.what());
  }
  const bool is_short = p.dtype == DType::kF16 || p.dtype == DType::kBF16;
  if (!is_short && p.dtype != DType::kF32 && p.dtype != DType::kF64)
    refuse_symbol(symbol, "not a float product");
  if (p.result != p.dtype && !(is_short && p.result == DType::kF32))
    refuse_symbol(symbol, "no library writes this type of result");
  if (fields[3].size() != 2 || fields[3].find_first_not_of("nt") != std::string::npos)
    refuse_symbol(symbol, "transposes are nn, nt, tn or tt");
  p.trans_a = fields[3][0] == 't';
  p.trans_b = fields[3][1] == 't';
  p.a = buffer_position(symbol, fields[4]);
  p.b = buffer_position(symbol, fields[5]);
  p.product = buffer_position(symbol, fields[6]);
  p.workspace = buffer_position(symbol, fields[7]);
  return p;
}

}  // namespace thrice::artifact
