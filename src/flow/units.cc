// Numbers with units, and the nearest known word for error messages.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "flow/settings.h"

namespace thrice::flow {

namespace {
// Splits "10.5 m" into 10.5 and "m".
std::pair<double, std::string> split_unit(const std::string& text, const std::string& what,
                                          const std::string& example) {
  const char* begin = text.c_str();
  char* end = nullptr;
  const double number = std::strtod(begin, &end);
  if (end == begin || !std::isfinite(number))
    throw Error(Code::kInvalidArgument,
                fmt::format("'{}' is no {}; write for example {}", text, what, example));
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  return {number, unit};
}
}  // namespace

double parse_temperature(const std::string& text) {
  const auto [number, unit] = split_unit(text, "temperature", "85°C");
  if (unit.empty() || unit == "C" || unit == "°C") return number;
  throw Error(Code::kInvalidArgument, fmt::format("unknown unit '{}' in '{}'; known: °C, C", unit, text));
}

int64_t parse_bytes(const std::string& text) {
  const auto [number, unit] = split_unit(text, "amount of memory", "1GB");
  static const std::pair<const char*, double> kUnits[] = {
      {"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
      {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  for (const auto& [name, factor] : kUnits)
    if (unit == name) {
      const double bytes = number * factor;
      if (!(bytes >= 0 && bytes < 0x1p62))
        throw Error(Code::kInvalidArgument, fmt::format("'{}' is out of range", text));
      return static_cast<int64_t>(bytes);
    }
  throw Error(Code::kInvalidArgument,
              fmt::format("unknown unit '{}' in '{}'; known: B KB MB GB TB KiB MiB GiB TiB", unit, text));
}

double parse_duration(const std::string& text) {
  const auto [number, unit] = split_unit(text, "duration", "10m");
  if (!(number >= 0))
    throw Error(Code::kInvalidArgument, fmt::format("'{}': a duration is not negative", text));
  if (unit.empty() || unit == "s") return number;
  if (unit == "ms") return number / 1000;
  if (unit == "m" || unit == "min") return number * 60;
  if (unit == "h") return number * 3600;
  throw Error(Code::kInvalidArgument, fmt::format("unknown unit '{}' in '{}'; known: ms s m h", unit, text));
}

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = word.size() / 2 + 1;
  for (const std::string& candidate : known) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t substituted = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace thrice::flow
