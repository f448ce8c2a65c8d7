// Extents that exporters write as expressions over other symbols: "past + 1", "2*width", "(n + 1)//2".
#pragma once
#include <optional>
#include <string>

#include "ir/dim.h"

namespace thrice::frontend::onnx {

// Sums, differences, products and floor divisions (`//`) of names and whole numbers, with brackets; nullopt
// where the text is anything else (the caller takes it for a name then).
std::optional<ir::Dim> parse_extent(const std::string& text);

}  // namespace thrice::frontend::onnx
