#include "library/entry.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace thrice::library {

namespace {

constexpr size_t kColumns = 10;
constexpr const char* kColumnNames[kColumns] = {"id",       "kind",  "dtype",   "pattern",  "length",
                                                "operands", "nodes", "extents", "features", "networks"};

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at; (at = text.find(by, from)) != std::string::npos; from = at + by.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}

[[noreturn]] void refuse(size_t column, const std::string& text, const std::string& wanted) {
  throw Error(Code::kInvalidArgument,
              fmt::format("column '{}' of an operator's line is '{}'; it should be {}", kColumnNames[column],
                          text, wanted));
}

int64_t integer(const std::string& text, size_t column, const std::string& whole, const std::string& wanted) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    refuse(column, whole, wanted);
  }
  if (used != text.size()) refuse(column, whole, wanted);
  return value;
}

bool is_hex(const std::string& text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Range parse_range(const std::string& text, const std::string& whole) {
  const std::string wanted = "s0=LOW..HIGH@TYPICAL for each run-time extent, with LOW <= TYPICAL <= HIGH";
  const size_t dots = text.find(".."), at = text.find('@');
  if (dots == std::string::npos || at == std::string::npos || at < dots) refuse(7, whole, wanted);
  const Range range{integer(text.substr(0, dots), 7, whole, wanted),
                    integer(text.substr(dots + 2, at - dots - 2), 7, whole, wanted),
                    integer(text.substr(at + 1), 7, whole, wanted)};
  if (range.low < 0 || range.low > range.typical || range.typical > range.high) refuse(7, whole, wanted);
  return range;
}

// "name=text" pairs separated by blanks.
std::vector<std::pair<std::string, std::string>> pairs(const std::string& text, size_t column,
                                                       const std::string& wanted) {
  std::vector<std::pair<std::string, std::string>> found;
  if (text == "-") return found;
  for (const std::string& part : split(text, " ")) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) refuse(column, text, wanted);
    found.emplace_back(part.substr(0, equals), part.substr(equals + 1));
  }
  return found;
}

}  // namespace

std::string Entry::identity() const {
  std::string text = fmt::format("{}|{}|{}|{}|{}", kind, dtype, variable, operands, nodes);
  for (const auto& [name, range] : extents) text += fmt::format("|{}={}..{}", name, range.low, range.high);
  return text;
}

const std::vector<std::string>& pattern_names() {
  static const std::vector<std::string> kNames{"elementwise", "broadcast", "layout", "gather",
                                               "scatter",     "reduction", "row",    "product",
                                               "window",      "sample",    "scan",   "sort"};
  return kNames;
}

std::string to_line(const Entry& e) {
  std::string extents, features;
  for (const auto& [name, r] : e.extents)
    extents += fmt::format("{}{}={}..{}@{}", extents.empty() ? "" : " ", name, r.low, r.high, r.typical);
  for (const auto& [name, value] : e.features)
    features += fmt::format("{}{}={:.12g}", features.empty() ? "" : " ", name, value);
  return fmt::format("{} | {} | {} | {} | {} | {} | {} | {} | {} | {}", e.id, e.kind, e.dtype, e.pattern,
                     e.variable ? "variable" : "fixed", e.operands.empty() ? "-" : e.operands, e.nodes,
                     extents.empty() ? "-" : extents, features.empty() ? "-" : features,
                     fmt::join(e.networks, ","));
}

Entry from_line(const std::string& line) {
  const std::vector<std::string> column = split(line, " | ");
  if (column.size() != kColumns)
    throw Error(Code::kInvalidArgument,
                fmt::format("an operator's line has {} columns, separated by ' | '; here are {}: {}",
                            kColumns, column.size(), line.substr(0, 80)));
  Entry e;
  e.id = column[0];
  if (!is_hex(e.id)) refuse(0, e.id, "16 hexadecimal digits");
  e.kind = column[1];
  e.dtype = column[2];
  e.pattern = column[3];
  const auto& patterns = pattern_names();
  if (std::find(patterns.begin(), patterns.end(), e.pattern) == patterns.end())
    refuse(3, e.pattern, fmt::format("one of {}", fmt::join(patterns, " ")));
  if (column[4] != "fixed" && column[4] != "variable") refuse(4, column[4], "fixed or variable");
  e.variable = column[4] == "variable";
  e.operands = column[5] == "-" ? "" : column[5];
  e.nodes = column[6];
  for (const auto& [name, text] : pairs(column[7], 7, "s0=LOW..HIGH@TYPICAL, or -"))
    e.extents[name] = parse_range(text, column[7]);
  for (const auto& [name, text] : pairs(column[8], 8, "NAME=NUMBER, or -")) {
    size_t used = 0;
    try {
      e.features[name] = std::stod(text, &used);
    } catch (const std::exception&) {
    }
    if (used == 0 || used != text.size()) refuse(8, column[8], "NAME=NUMBER for each feature");
  }
  e.networks = split(column[9], ",");
  for (size_t i : {1, 2, 6, 9})
    if (column[i].empty()) refuse(i, column[i], "not empty");
  return e;
}

std::string core_of(const Entry& e) {
  for (const std::string& node : split(e.nodes, "; "))
    for (const char* core : {"conv", "conv_transpose", "matmul", "pool", "resize", "top_k", "scan_sum"})
      if (node.rfind(std::string(core) + "(", 0) == 0) return core;
  return e.pattern;
}

double distance(const Entry& a, const Entry& b) {
  if (a.dtype != b.dtype || core_of(a) != core_of(b) || a.pattern != b.pattern)
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (const auto* one : {&a, &b}) {
    const Entry& other = one == &a ? b : a;
    for (const auto& [name, value] : one->features) {
      const auto it = other.features.find(name);
      if (it == other.features.end()) {
        sum += 2;  // a size that only one has
        continue;
      }
      // Both sides come by here: half each time.
      sum += 0.5 * std::fabs(std::log2(std::max(value, 1.0)) - std::log2(std::max(it->second, 1.0)));
    }
  }
  const auto nodes = [](const Entry& e) { return static_cast<double>(split(e.nodes, "; ").size()); };
  return sum + 0.1 * std::fabs(nodes(a) - nodes(b));
}

}  // namespace thrice::library
