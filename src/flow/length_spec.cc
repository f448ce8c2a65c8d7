#include "flow/length_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thrice/status.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <sstream>

#include "base/file.h"

namespace thrice::flow {

namespace {

constexpr size_t kMostLengths = 65536;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: {} (a length a line, with a count of requests or without; or uniform:1-512)",
                          where, what));
}

int64_t whole(const std::string& text, int64_t most, const std::string& where) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    refuse(where, fmt::format("'{}' is no whole number from 1 to {}", text.substr(0, 40), most));
  return value;
}
int64_t length_of(const std::string& text, const std::string& where) {
  return whole(text, (int64_t{1} << 31) - 1, where);
}

std::map<int64_t, double> uniform(const std::string& range, const std::string& where) {
  const size_t dash = range.find('-');
  if (dash == std::string::npos) refuse(where, fmt::format("'{}' is no range", range.substr(0, 40)));
  const int64_t first = length_of(range.substr(0, dash), where),
                last = length_of(range.substr(dash + 1), where);
  if (first > last) refuse(where, fmt::format("{} is above {}", first, last));
  if (last - first >= static_cast<int64_t>(kMostLengths))
    refuse(where, fmt::format("a range holds at most {} lengths", kMostLengths));
  std::map<int64_t, double> counts;
  for (int64_t l = first; l <= last; ++l) counts[l] = 1;
  return counts;
}

std::map<int64_t, double> counted(const std::string& path) {
  constexpr int64_t kMostRequests = 1'000'000'000'000;
  std::map<int64_t, double> counts;
  std::istringstream text(read_text(path));
  std::string line;
  for (int64_t number = 1; std::getline(text, line); ++number) {
    const std::string where = fmt::format("--lengths: {}:{}", path, number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string length, requests, more;
    if (!(words >> length)) continue;
    const double n = words >> requests ? static_cast<double>(whole(requests, kMostRequests, where)) : 1;
    if (words >> more) refuse(where, fmt::format("'{}' is one word too many", more.substr(0, 40)));
    counts[length_of(length, where)] += n;
    if (counts.size() > kMostLengths) refuse(where, fmt::format("more than {} lengths", kMostLengths));
  }
  if (counts.empty()) refuse("--lengths: " + path, "it holds no length");
  return counts;
}

}  // namespace

LengthSpec parse_lengths(const std::string& text, const std::set<std::string>& symbols) {
  LengthSpec spec;
  std::string source = text;
  const size_t equals = text.find('=');
  if (equals != std::string::npos && symbols.count(text.substr(0, equals))) {
    spec.symbol = text.substr(0, equals);
    source = text.substr(equals + 1);
  } else if (symbols.size() == 1) {
    spec.symbol = *symbols.begin();
  } else {
    throw Error(Code::kInvalidArgument,
                symbols.empty()
                    ? "--lengths: the model has no symbolic dimension"
                    : fmt::format("--lengths: which dimension? --lengths NAME={}; the model has: {}", text,
                                  fmt::join(symbols, ", ")));
  }
  const bool is_uniform = source.rfind("uniform:", 0) == 0;
  const std::map<int64_t, double> counts =
      is_uniform ? uniform(source.substr(8), "--lengths: " + source) : counted(source);
  double all = 0;
  for (const auto& [length, count] : counts) all += count;
  for (const auto& [length, count] : counts) spec.lengths.push_back({length, count / all});
  return spec;
}

}  // namespace thrice::flow
