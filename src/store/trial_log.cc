#include "store/trial_log.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/file.h"

namespace thrice::store {
namespace {

namespace fs = std::filesystem;
using artifact::Outcome;

constexpr const char* kHeader =
    "workload,shape,region,uses,default,family,tactic,parameters,outcome,time_us,spread_us,samples,error,"
    "error_limit,build_ms,registers,shared_bytes,spill_bytes,temporary_bytes,concurrent_us,message,warm_us,"
    "cold_us,throttled_samples,sm_mhz,least_sm_mhz,memory_mhz,temperature_c,power_w";
constexpr const char* kFirstColumns = "workload,shape,region,uses,default,family,tactic,parameters,outcome,";

std::string quoted(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (inside && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[++i];
      else
        inside = !inside;
    } else if (line[i] == ',' && !inside) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

// Whole lines; what follows the last line break was cut.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin - (end > begin && text[end - 1] == '\r')));
  return lines;
}

// One line by its columns; throws with its place.
struct Line {
  const std::string& path;
  size_t number;
  const std::vector<std::string>&names, &fields;

  const std::string* find(const std::string& column) const {
    const auto it = std::find(names.begin(), names.end(), column);
    return it == names.end() ? nullptr : &fields[static_cast<size_t>(it - names.begin())];
  }
  const std::string& text(const char* column) const {
    if (const std::string* found = find(column)) return *found;
    throw Error(Code::kCorrupt, fmt::format("'{}' has no column '{}'", path, column));
  }
  template <class T>
  T number_of(const std::string& text) const {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw Error(Code::kCorrupt, fmt::format("{}, line {}: '{}' is no number", path, number, text));
    return value;
  }
  template <class T>
  void get(const char* column, T& value) const {
    value = number_of<T>(text(column));
  }
  // Of a column that logs of older versions lack: `value` stays as it is.
  template <class T>
  void get_if_there(const char* column, T& value) const {
    if (const std::string* found = find(column)) value = number_of<T>(*found);
  }
};

LoggedTrial trial_of(const Line& line) {
  LoggedTrial t;
  t.workload = line.text("workload");
  t.shape = line.text("shape");
  t.region = line.text("region");
  line.get("uses", t.uses);
  t.is_default = line.text("default") == "1";
  const std::string& parameters = line.text("parameters");
  t.schedule = artifact::Schedule::parse(line.text("family") + "/" + line.text("tactic") +
                                         (parameters.empty() ? "" : " " + parameters));
  artifact::Measurement& m = t.measurement;
  m.outcome = artifact::parse_outcome(line.text("outcome"));
  line.get("time_us", m.time_us);
  line.get("spread_us", m.spread_us);
  line.get("samples", m.samples);
  line.get("error", m.error);
  line.get("error_limit", m.error_limit);
  line.get("build_ms", m.build_ms);
  line.get("registers", m.registers);
  line.get("shared_bytes", m.shared_bytes);
  line.get("spill_bytes", m.spill_bytes);
  line.get("temporary_bytes", m.temporary_bytes);
  line.get_if_there("concurrent_us", m.concurrent_us);
  m.message = line.text("message");
  artifact::Conditions& c = m.conditions;
  line.get_if_there("warm_us", m.warm_us);
  line.get_if_there("cold_us", m.cold_us);
  line.get_if_there("throttled_samples", c.throttled_samples);
  line.get_if_there("sm_mhz", c.sm_mhz);
  line.get_if_there("least_sm_mhz", c.least_sm_mhz);
  line.get_if_there("memory_mhz", c.memory_mhz);
  line.get_if_there("temperature_c", c.temperature_c);
  line.get_if_there("power_w", c.power_w);
  return t;
}

LoggedTrial configuration_of(const Line& line, const std::string& space) {
  LoggedTrial t;
  t.workload = t.region = space;
  t.schedule = {space, "recorded", {}};
  for (size_t c = 0; c + 1 < line.names.size(); ++c)
    t.schedule.values.emplace_back(line.names[c], line.number_of<int64_t>(line.fields[c]));
  const double ms = line.number_of<double>(line.fields.back());
  if (!std::isfinite(ms) || !(ms > 0)) {
    t.measurement.outcome = Outcome::kLaunchFailed;
    return t;
  }
  t.measurement.outcome = Outcome::kOk;
  t.measurement.time_us = ms * 1e3;
  t.measurement.error = 0;
  t.measurement.error_limit = 1;
  return t;
}

}  // namespace

TrialLog::TrialLog(const std::string& path) : path_(path) {
  bool is_new = true;
  if (fs::exists(path) && fs::is_regular_file(path) && fs::file_size(path) > 0) {
    const std::string text = read_text(path);
    const std::vector<std::string> lines = lines_of(text);
    if (lines.empty() || lines[0] != kHeader)
      throw Error(
          Code::kInvalidArgument,
          fmt::format(
              "'{}' is there and holds no recorded trials, or those of another version: name another file",
              path));
    const size_t whole = text.rfind('\n') + 1;
    std::error_code failed;
    if (whole < text.size()) fs::resize_file(path, whole, failed);
    is_new = false;
  }
  file_ = std::fopen(path.c_str(), "a");
  if (!file_) throw Error(Code::kIo, fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  if (is_new) std::fprintf(file_, "%s\n", kHeader);
  std::fflush(file_);
}
TrialLog::~TrialLog() { std::fclose(file_); }

void TrialLog::add(const LoggedTrial& t) {
  const artifact::Measurement& m = t.measurement;
  std::string parameters;
  for (const auto& [name, value] : t.schedule.values)
    parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", name, value);
  const std::string line = fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", t.workload,
      quoted(t.shape), quoted(t.region), t.uses, t.is_default ? 1 : 0, t.schedule.family, t.schedule.tactic,
      parameters, outcome_name(m.outcome), m.time_us, m.spread_us, m.samples, m.error, m.error_limit,
      m.build_ms, m.registers, m.shared_bytes, m.spill_bytes, m.temporary_bytes, m.concurrent_us,
      quoted(m.message), m.warm_us, m.cold_us, m.conditions.throttled_samples, m.conditions.sm_mhz,
      m.conditions.least_sm_mhz, m.conditions.memory_mhz, m.conditions.temperature_c, m.conditions.power_w);
  // One write a line: a killed process leaves whole lines or one that is cut.
  if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
    throw Error(Code::kIo, fmt::format("cannot write '{}': {}", path_, std::strerror(errno)));
}

std::vector<LoggedTrial> read_trial_log(const std::string& path) {
  const std::vector<std::string> lines = lines_of(read_text(path));
  const std::vector<std::string> names = lines.empty() ? std::vector<std::string>() : split(lines[0]);
  const bool is_log = !lines.empty() && lines[0].rfind(kFirstColumns, 0) == 0;
  if (!is_log && (names.size() < 2 || names.back() != "time"))
    throw Error(Code::kCorrupt,
                fmt::format("'{}' holds no recorded trials: its first line names other columns", path));
  std::vector<LoggedTrial> trials;
  bool has_default = false;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = split(lines[i]);
    if (fields.size() != names.size())
      throw Error(Code::kCorrupt, fmt::format("{}, line {}: {} fields, but the header names {}", path, i + 1,
                                              fields.size(), names.size()));
    const Line line{path, i + 1, names, fields};
    trials.push_back(is_log ? trial_of(line) : configuration_of(line, fs::path(path).stem().string()));
    if (is_log || has_default || trials.back().measurement.outcome != Outcome::kOk) continue;
    trials.back().is_default = has_default = true;
  }
  return trials;
}

}  // namespace thrice::store
