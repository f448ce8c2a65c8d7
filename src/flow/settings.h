// Every knob of the product, read once: defaults, then the YAML file, then the environment, then flags.
// Table: docs/settings.md.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thrice::flow {

struct RewardWeights {
  double latency = 0.6, throughput = 0.3,
         memory_usage = 0.1;  // product.md's example; weights of logarithms; docs/agent.md
};
struct HardwareConstraints {
  double max_temp_c = 85;                         // above it tuning pauses
  int64_t min_free_memory_bytes = 1'000'000'000;  // 1GB: candidates that would leave less are refused
};
struct AgentConfig {
  double learning_rate = 0.001;
  double exploration_rate = 0.1;
  RewardWeights reward_weights;
  HardwareConstraints hardware_constraints;
};

struct Settings {
  AgentConfig agent_config;
  std::string agent = "actor_critic";  // agents: tune/agent.h
  std::string agent_file;              // trained agent (docs/agent.md); "" = the one in the program
  bool pretrained = true;              // false: nothing learned elsewhere is used
  std::string planner = "greedy";      // greedy | dp | original
  double budget_s = 600;               // tuning time; 10 minutes is what most users wait for once
  int64_t max_trials = 1000;           // whichever ends first
  uint64_t seed = 1;
  int64_t memory_budget_bytes = 0;  // device memory of one session; 0 = no limit
  std::string lengths;             // [NAME=]uniform:1-512 | [NAME=]FILE (flow/length_spec.h); "" = one length
  std::string in_place = "auto";   // auto | on | off: results over operands; auto: on, but for CUDA
  bool check_races = false;        // chosen kernels under a race checker; it must be there
  std::string device;              // "" = the best found
  std::string cache_folder;        // kernels; "" = $XDG_CACHE_HOME/thrice or ~/.cache/thrice
  std::string store_path;          // tuning records; "" = <cache_folder>/store.sqlite
  std::string caches = "auto";     // timing.caches: auto | warm | cold
  std::string load = "sustained";  // timing.load: sustained | burst: a model that is served works without
                                   // pause
  std::string log_level = "warning";
};

// Reads a settings file over `settings`. Unknown keys, wrong kinds and bad units are kInvalidArgument with
// the line and the nearest known key; nesting deeper than 16 and files above 1 MiB are refused. kNotFound
// where there is no file.
void read_settings_file(const std::string& path, Settings& settings);
void read_settings_text(const std::string& text, const std::string& name, Settings& settings);
// THRICE_DEVICE, THRICE_CACHE, THRICE_STORE, THRICE_LOG. Fills the folders' defaults.
void read_environment(Settings& settings);

// "85°C", "85C", "85" -> 85. "1GB" -> 1e9, "1GiB" -> 2^30, MB, MiB, KB, KiB, B, plain bytes. "10m", "90s",
// "1h", plain seconds. Throw kInvalidArgument with the units that are known.
double parse_temperature(const std::string& text);
int64_t parse_bytes(const std::string& text);
double parse_duration(const std::string& text);

// The known word nearest to `word` by edit distance; empty where nothing is near (more than half of the
// letters differ).
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

}  // namespace thrice::flow
