#include "artifact/library_symbol.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <sstream>

namespace thrice::artifact {

bool is_library_symbol(const std::string& symbol) { return symbol.find(':') != std::string::npos; }

std::vector<std::string> library_fields(const std::string& symbol, const std::string& library) {
  std::vector<std::string> fields;
  if (symbol.rfind(library + ":", 0) != 0) return fields;
  std::istringstream text(symbol);
  for (std::string field; std::getline(text, field, ':');) fields.push_back(field);
  return fields;
}

int buffer_position(const std::string& symbol, const std::string& field) {
  constexpr size_t kMostDigits = 4;
  if (field.empty() || field.size() > kMostDigits ||
      !std::all_of(field.begin(), field.end(), [](char c) { return c >= '0' && c <= '9'; }))
    refuse_symbol(symbol, fmt::format("'{}' is no position of a buffer", field));
  return std::stoi(field);
}

void refuse_symbol(const std::string& symbol, const std::string& why) {
  throw Error(Code::kCorrupt, fmt::format("'{}' describes no call of a library: {}", symbol, why));
}

}  // namespace thrice::artifact
