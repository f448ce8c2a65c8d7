#include "flow/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thrice/status.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/file.h"

namespace thrice::flow {

namespace {

using Setter = std::function<void(const std::string& text, Settings&)>;

double number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end)
    throw Error(Code::kInvalidArgument, fmt::format("'{}' is no number", text));
  return value;
}
double share(const std::string& text) {
  const double value = number(text);
  if (!(value >= 0 && value <= 1))
    throw Error(Code::kInvalidArgument, fmt::format("'{}' must lie between 0 and 1", text));
  return value;
}
int64_t count(const std::string& text) {
  const double value = number(text);
  if (!(value >= 0 && value < 0x1p53) || value != static_cast<double>(static_cast<int64_t>(value)))
    throw Error(Code::kInvalidArgument, fmt::format("'{}' is no count", text));
  return static_cast<int64_t>(value);
}

bool yes_or_no(const std::string& text) {
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no") return false;
  throw Error(Code::kInvalidArgument, fmt::format("'{}' is neither true nor false", text));
}

std::string one_of(const std::string& text, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), text) == words.end())
    throw Error(Code::kInvalidArgument, fmt::format("'{}' is none of {}", text, fmt::join(words, ", ")));
  return text;
}

// Full path of a key -> what it sets. The one list of the keys that exist; docs/settings.md explains them.
const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> kSetters = {
      {"agent_config.learning_rate", [](auto& t, Settings& s) { s.agent_config.learning_rate = share(t); }},
      {"agent_config.exploration_rate",
       [](auto& t, Settings& s) { s.agent_config.exploration_rate = share(t); }},
      {"agent_config.reward_weights.latency",
       [](auto& t, Settings& s) { s.agent_config.reward_weights.latency = share(t); }},
      {"agent_config.reward_weights.throughput",
       [](auto& t, Settings& s) { s.agent_config.reward_weights.throughput = share(t); }},
      {"agent_config.reward_weights.memory_usage",
       [](auto& t, Settings& s) { s.agent_config.reward_weights.memory_usage = share(t); }},
      {"agent_config.hardware_constraints.max_temp",
       [](auto& t, Settings& s) { s.agent_config.hardware_constraints.max_temp_c = parse_temperature(t); }},
      {"agent_config.hardware_constraints.min_free_memory",
       [](auto& t, Settings& s) {
         s.agent_config.hardware_constraints.min_free_memory_bytes = parse_bytes(t);
       }},
      {"agent", [](auto& t, Settings& s) { s.agent = t; }},
      {"agent_file", [](auto& t, Settings& s) { s.agent_file = t; }},
      {"pretrained", [](auto& t, Settings& s) { s.pretrained = yes_or_no(t); }},
      {"planner", [](auto& t, Settings& s) { s.planner = t; }},
      {"budget", [](auto& t, Settings& s) { s.budget_s = parse_duration(t); }},
      {"memory_budget", [](auto& t, Settings& s) { s.memory_budget_bytes = parse_bytes(t); }},
      {"lengths", [](auto& t, Settings& s) { s.lengths = t; }},
      {"in_place",
       [](auto& t, Settings& s) {
         s.in_place = one_of(t, {"auto", "on", "off"});
       }},
      {"check_races", [](auto& t, Settings& s) { s.check_races = yes_or_no(t); }},
      {"max_trials", [](auto& t, Settings& s) { s.max_trials = count(t); }},
      {"seed", [](auto& t, Settings& s) { s.seed = static_cast<uint64_t>(count(t)); }},
      {"device", [](auto& t, Settings& s) { s.device = t; }},
      {"cache_folder", [](auto& t, Settings& s) { s.cache_folder = t; }},
      {"store_path", [](auto& t, Settings& s) { s.store_path = t; }},
      {"timing.caches",
       [](auto& t, Settings& s) {
         s.caches = one_of(t, {"auto", "warm", "cold"});
       }},
      {"timing.load",
       [](auto& t, Settings& s) {
         s.load = one_of(t, {"sustained", "burst"});
       }},
      {"log_level", [](auto& t, Settings& s) { s.log_level = t; }},
  };
  return kSetters;
}

[[noreturn]] void unknown_key(const std::string& path, const std::string& where) {
  std::vector<std::string> known;
  for (const auto& [key, setter] : setters()) known.push_back(key);
  const std::string near = nearest_word(path, known);
  throw Error(Code::kInvalidArgument, fmt::format("{}: unknown key '{}'{}", where, path,
                                                  near.empty() ? "; known keys: docs/settings.md"
                                                               : fmt::format("; did you mean '{}'?", near)));
}

void apply(const YAML::Node& node, const std::string& path, const std::string& name, int depth,
           Settings& settings) {
  constexpr int kMaxDepth = 16;  // the deepest key has three levels
  const std::string where = fmt::format("{}:{}", name, node.Mark().line + 1);
  if (depth > kMaxDepth)
    throw Error(Code::kInvalidArgument, fmt::format("{}: nested deeper than {} levels", where, kMaxDepth));
  if (node.IsMap()) {
    for (const auto& entry : node) {
      const std::string key = path.empty() ? entry.first.Scalar() : path + "." + entry.first.Scalar();
      const std::string key_where = fmt::format("{}:{}", name, entry.first.Mark().line + 1);
      const auto it = setters().lower_bound(key);
      const bool is_known = it != setters().end() && (it->first == key || it->first.rfind(key + ".", 0) == 0);
      if (!is_known) unknown_key(key, key_where);
      apply(entry.second, key, name, depth + 1, settings);
    }
    return;
  }
  const auto it = setters().find(path);
  if (it == setters().end() || !node.IsScalar())
    throw Error(Code::kInvalidArgument, fmt::format("{}: '{}' must be a {}", where, path,
                                                    it == setters().end() ? "map" : "single value"));
  try {
    it->second(node.Scalar(), settings);
  } catch (const Error& e) {
    throw Error(e.code(), fmt::format("{}: {}: {}", where, path, e.what()));
  }
}

// yaml-cpp recurses once a level: text nested thousands deep is refused before it is parsed.
void check_depth(const std::string& text, const std::string& name) {
  constexpr int kMaxFlowDepth = 64;
  int depth = 0, line = 1;
  size_t indent_max = 0, indent = 0;
  bool at_start = true;
  for (char c : text) {
    if (c == '\n') {
      ++line;
      indent = 0;
      at_start = true;
      continue;
    }
    if (at_start && (c == ' ' || c == '-'))
      indent_max = std::max(indent_max, ++indent);
    else
      at_start = false;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxFlowDepth || indent_max > 256)
      throw Error(Code::kInvalidArgument, fmt::format("{}:{}: nested too deep", name, line));
  }
}

}  // namespace

void read_settings_text(const std::string& text, const std::string& name, Settings& settings) {
  check_depth(text, name);
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& e) {
    throw Error(Code::kInvalidArgument, fmt::format("{}:{}: {}", name, e.mark.line + 1, e.msg));
  }
  if (root.IsNull()) return;
  if (!root.IsMap())
    throw Error(Code::kInvalidArgument, fmt::format("{}: a settings file is a map of keys", name));
  Settings changed = settings;  // all or nothing
  apply(root, "", name, 0, changed);
  settings = changed;
}

void read_settings_file(const std::string& path, Settings& settings) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  const std::string text = read_text(path);
  if (text.size() > kMostBytes)
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: a settings file has at most {} bytes, this one has {}", path, kMostBytes,
                            text.size()));
  read_settings_text(text, path, settings);
}

void read_environment(Settings& settings) {
  const auto read = [](const char* name, std::string& slot) {
    const char* value = std::getenv(name);
    if (value && *value) slot = value;
  };
  read("THRICE_DEVICE", settings.device);
  read("THRICE_CACHE", settings.cache_folder);
  read("THRICE_STORE", settings.store_path);
  read("THRICE_LOG", settings.log_level);
  if (settings.cache_folder.empty()) {
    std::string base;
    read("XDG_CACHE_HOME", base);
    if (base.empty()) {
      read("HOME", base);
      base = base.empty() ? "/tmp" : base + "/.cache";
    }
    settings.cache_folder = base + "/thrice";
  }
  if (settings.store_path.empty()) settings.store_path = settings.cache_folder + "/store.sqlite";
}

}  // namespace thrice::flow
