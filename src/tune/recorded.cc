#include "tune/recorded.h"

#include <fmt/format.h>
#include <thrice/status.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"

namespace thrice::tune {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Rows as text, whatever the file's form; time in ms, NaN where it failed.
struct RowTable {
  std::vector<std::string> names;
  std::vector<std::pair<std::vector<std::string>, double>> rows;
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

double time_of_text(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && !*end && std::isfinite(value) && value > 0 && value < 1e19 ? value : kNone;
}
// A number is a time; a word ("InvalidConfig") or 1e20 says that there is none.
double time_of(const json& value) { return value.is_number() ? time_of_text(value.dump()) : kNone; }
std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

RowTable from_csv(const std::string& text, const std::string& path) {
  RowTable table;
  size_t number = 0, columns = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    std::vector<std::string> fields(1);
    for (const char c : line)
      if (c == ',')
        fields.emplace_back();
      else
        fields.back() += c;
    if (table.names.empty()) {
      const auto time = std::find(fields.begin(), fields.end(), "time");
      if (time == fields.begin() || time == fields.end())
        throw Error(Code::kCorrupt,
                    fmt::format("{}: a recorded space has a column `time` behind its parameters", path));
      columns = fields.size();
      table.names.assign(fields.begin(), time);
      continue;
    }
    if (fields.size() != columns)
      throw Error(Code::kCorrupt, fmt::format("{}, line {}: {} fields, but the header names {}", path, number,
                                              fields.size(), columns));
    const double time = time_of_text(fields[table.names.size()]);
    fields.resize(table.names.size());
    table.rows.emplace_back(std::move(fields), time);
  }
  return table;
}

RowTable from_t4(const json& root) {
  RowTable table;
  for (const json& result : root.at("results")) {
    const json& configuration = result.at("configuration");
    if (table.names.empty())
      for (const auto& [name, value] : configuration.items()) table.names.push_back(name);
    std::vector<std::string> row;
    for (const std::string& name : table.names) row.push_back(text_of(configuration.at(name)));
    double time = kNone;
    if (result.contains("measurements"))
      for (const json& m : result["measurements"])
        if (m.value("name", "") == "time") time = time_of(m.at("value"));
    if (std::isnan(time) && result.contains("times") && result["times"].contains("runtimes")) {
      const json& runs = result["times"]["runtimes"];
      double sum = 0;
      for (const json& run : runs) sum += time_of(run);
      if (runs.is_array() && !runs.empty()) time = sum / static_cast<double>(runs.size());
    }
    if (result.value("invalidity", "correct") != "correct") time = kNone;
    table.rows.emplace_back(std::move(row), time);
  }
  return table;
}

RowTable from_kernel_tuner(const json& root) {
  RowTable table;
  table.names = root.at("tune_params_keys").get<std::vector<std::string>>();
  const std::string objective = root.contains("objective") && root["objective"].is_string()
                                    ? root["objective"].get<std::string>()
                                    : "time";
  for (const auto& [key, entry] : root.at("cache").items()) {
    std::vector<std::string> row;
    for (const std::string& name : table.names) row.push_back(text_of(entry.at(name)));
    table.rows.emplace_back(std::move(row), entry.contains(objective) ? time_of(entry[objective]) : kNone);
  }
  return table;
}

RowTable from_json(const std::string& text, const std::string& path) {
  json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) {  // Kernel Tuner leaves the two closing braces of a file that may grow away
    const size_t last = text.find_last_not_of(" \n\r\t,");
    root = json::parse(text.substr(0, last + 1) + "}}", nullptr, false);
  }
  try {
    if (root.is_object() && root.contains("results")) return from_t4(root);
    if (root.is_object() && root.contains("cache")) return from_kernel_tuner(root);
  } catch (const json::exception& e) {
    throw Error(Code::kCorrupt, fmt::format("{}: {}", path, e.what()));
  }
  throw Error(Code::kCorrupt,
              fmt::format("'{}' is neither a T4 results file nor a Kernel Tuner cache", path));
}

RecordedSpace space_of(const RowTable& table, const std::string& name, const std::string& path) {
  if (table.rows.empty()) throw Error(Code::kCorrupt, fmt::format("'{}' holds no configuration", path));
  std::vector<Dimension> dimensions;
  std::vector<std::map<std::string, uint16_t>> places;
  std::vector<std::string> tactics;  // by spelling, where there is such a column
  const bool has_tactics = table.names[0] == "tactic" && table.names.size() > 1;
  for (size_t d = 0; d < table.names.size(); ++d) {
    std::map<std::string, double> values;
    for (const auto& [row, time] : table.rows) values[row[d]] = 0;
    bool numbers = !(has_tactics && d == 0);
    for (auto& [text, value] : values) {
      char* end = nullptr;
      value = text == "true" ? 1 : text == "false" ? 0 : std::strtod(text.c_str(), &end);
      if (end && (end == text.c_str() || *end || value != std::floor(value))) numbers = false;
    }
    if (!numbers) {  // in the order of spelling
      double next = 0;
      for (auto& [text, value] : values) value = next++;
    }
    std::set<int64_t> choices;
    for (const auto& [text, value] : values) choices.insert(static_cast<int64_t>(value));
    if (has_tactics && d == 0)
      for (const auto& [text, value] : values) tactics.push_back(text);
    else
      dimensions.push_back({table.names[d], {choices.begin(), choices.end()}});
    auto& place = places.emplace_back();
    for (const auto& [text, value] : values)
      place[text] =
          static_cast<uint16_t>(std::distance(choices.begin(), choices.find(static_cast<int64_t>(value))));
  }
  std::vector<Point> points;
  for (const auto& [row, time] : table.rows) {
    Point& point = points.emplace_back(has_tactics ? 0 : 1, uint16_t{0});
    for (size_t d = 0; d < row.size(); ++d) point.push_back(places[d].at(row[d]));
  }
  RecordedSpace recorded;
  recorded.name = name;
  recorded.group = name.substr(0, name.find('_'));
  if (has_tactics) recorded.family = recorded.group;
  for (const std::string& parameter : std::set<std::string>(table.names.begin(), table.names.end()))
    recorded.group += " " + parameter;
  recorded.space = has_tactics ? Space(recorded.family, tactics, std::move(dimensions), points)
                               : Space(recorded.name, {"recorded"}, std::move(dimensions), points);
  recorded.times.assign(recorded.space.listed().size(), kNone);
  for (size_t i = 0; i < points.size(); ++i)  // of a configuration that stands there twice the last counts
    recorded.times[static_cast<size_t>(recorded.space.find(points[i]))] = table.rows[i].second;
  for (const double time : recorded.times)
    if (!std::isnan(time)) recorded.sorted.push_back(time);
  std::sort(recorded.sorted.begin(), recorded.sorted.end());
  if (recorded.sorted.empty()) throw Error(Code::kCorrupt, fmt::format("'{}': no configuration ran", path));
  return recorded;
}

std::string base_name(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const char* end : {".gz", ".json", ".csv"})
    if (ends_with(name, end)) name.resize(name.size() - std::string(end).size());
  return name;
}

}  // namespace

std::string read_plain_or_gz(const std::string& path) {
  if (!ends_with(path, ".gz")) return read_text(path);
  if (!fs::exists(path)) throw Error(Code::kNotFound, fmt::format("there is no file '{}'", path));
  constexpr size_t kMost = size_t{1} << 31;
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw Error(Code::kIo, fmt::format("cannot open '{}'", path));
  std::string text;
  std::vector<char> block(1 << 16);
  int got = 0;
  while ((got = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0 && text.size() < kMost)
    text.append(block.data(), static_cast<size_t>(got));
  const bool whole = got == 0 && gzclose(file) == Z_OK;
  if (!whole) throw Error(Code::kCorrupt, fmt::format("'{}' is no whole gzip file", path));
  return text;
}

RecordedSpace read_space(const std::string& path) {
  const std::string text = read_plain_or_gz(path);
  const size_t first = text.find_first_not_of(" \n\r\t");
  const bool is_json = first != std::string::npos && text[first] == '{';
  return space_of(is_json ? from_json(text, path) : from_csv(text, path), base_name(path), path);
}

std::vector<RecordedSpace> read_spaces(const std::string& path) {
  if (!fs::is_directory(path)) {
    std::vector<RecordedSpace> one;
    one.push_back(read_space(path));
    return one;
  }
  json meta;
  std::vector<RecordedSpace> spaces;
  for (const std::string& file : list_folder(path)) {
    const std::string full = path + "/" + file;
    if (file == "meta.json") {
      meta = json::parse(read_text(full), nullptr, false);
    } else if (ends_with(file, ".csv") || ends_with(file, ".json") || ends_with(file, ".gz")) {
      spaces.push_back(read_space(full));
    }
  }
  if (spaces.empty())
    throw Error(Code::kNotFound, fmt::format("'{}' holds no recorded space (.csv, .json, .gz)", path));
  for (RecordedSpace& s : spaces)
    if (meta.is_object() && meta.contains("spaces") && meta["spaces"].contains(s.name))
      for (const auto& [key, value] : meta["spaces"][s.name].items())
        if (value.is_number()) s.device.emplace_back(key, value.get<double>());
  return spaces;
}

}  // namespace thrice::tune
