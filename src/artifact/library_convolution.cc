#include "artifact/library_convolution.h"

#include <fmt/format.h>

#include "artifact/library_symbol.h"

namespace thrice::artifact {

namespace {
constexpr const char* kName = "cudnn";
constexpr size_t kFields = 7;
}  // namespace

std::string LibraryConvolution::symbol() const {
  return fmt::format("{}:f32:{}:{}:{}:{}:{}", kName, spatial, x, w, y, workspace);
}

std::optional<LibraryConvolution> LibraryConvolution::parse(const std::string& symbol) {
  const std::vector<std::string> fields = library_fields(symbol, kName);
  if (fields.empty()) return std::nullopt;
  if (fields.size() != kFields) refuse_symbol(symbol, fmt::format("expected {} and 6 more fields", kName));
  if (fields[1] != "f32") refuse_symbol(symbol, "only f32 is computed there");
  if (fields[2] != "1" && fields[2] != "2" && fields[2] != "3") refuse_symbol(symbol, "1 to 3 spatial axes");
  LibraryConvolution c;
  c.spatial = fields[2][0] - '0';
  c.x = buffer_position(symbol, fields[3]);
  c.w = buffer_position(symbol, fields[4]);
  c.y = buffer_position(symbol, fields[5]);
  c.workspace = buffer_position(symbol, fields[6]);
  return c;
}

}  // namespace thrice::artifact
