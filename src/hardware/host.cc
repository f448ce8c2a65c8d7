#include "hardware/host.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace thrice::hardware {
namespace {

// The number after `key` in a file of "key: number" lines, or -1.
double number_after(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t colon = line.find(':');
    std::istringstream rest(colon == std::string::npos ? line.substr(key.size()) : line.substr(colon + 1));
    double value = -1;
    return rest >> value ? value : -1;
  }
  return -1;
}

double hottest_zone(const std::string& folder) {
  double hottest = kUnknown;
  std::error_code failed;
  for (const auto& zone : std::filesystem::directory_iterator(folder, failed)) {
    if (zone.path().filename().string().rfind("thermal_zone", 0) != 0) continue;
    std::ifstream file(zone.path() / "temp");
    double milli = 0;
    if (file >> milli) hottest = std::max(hottest, milli * 1e-3);
  }
  return hottest;
}

double mean_clock(const std::string& cpuinfo) {
  std::ifstream file(cpuinfo);
  double sum = 0;
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("cpu MHz", 0) != 0) continue;
    std::istringstream rest(line.substr(line.find(':') + 1));
    double mhz = 0;
    if (rest >> mhz) sum += mhz, ++count;
  }
  return count ? sum / count : kUnknown;
}

void read_network(const std::string& path, HostState& state) {
  std::ifstream file(path);
  if (!file) return;
  state.network_received_bytes = state.network_sent_bytes = 0;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream name(line.substr(0, colon)), numbers(line.substr(colon + 1));
    std::string interface;
    name >> interface;
    if (interface == "lo") continue;
    int64_t received = 0, skipped = 0, sent = 0;
    numbers >> received;
    for (int i = 0; i < 7; ++i) numbers >> skipped;
    if (!(numbers >> sent)) continue;
    state.network_received_bytes += received;
    state.network_sent_bytes += sent;
  }
}

}  // namespace

HostState HostReader::read() {
  HostState state;
  const double total = number_after(root_ + "/proc/meminfo", "MemTotal");
  const double available = number_after(root_ + "/proc/meminfo", "MemAvailable");
  if (total >= 0) state.memory_total_bytes = static_cast<int64_t>(total) * 1024;
  if (available >= 0) state.memory_free_bytes = static_cast<int64_t>(available) * 1024;
  std::ifstream(root_ + "/proc/loadavg") >> state.load_average;
  if (!is_known(state.load_average) || state.load_average > 1e6) state.load_average = kUnknown;

  // user nice system idle iowait irq softirq steal ...
  std::ifstream stat(root_ + "/proc/stat");
  std::string word;
  if (stat >> word && word == "cpu") {
    double all = 0, idle = 0, ticks = 0;
    for (int i = 0; i < 8 && stat >> ticks; ++i) {
      all += ticks;
      if (i == 3 || i == 4) idle += ticks;
    }
    const double busy = all - idle;
    if (all_ticks_ >= 0 && all > all_ticks_)
      state.cpu_busy = std::clamp((busy - busy_ticks_) / (all - all_ticks_), 0.0, 1.0);
    busy_ticks_ = busy;
    all_ticks_ = all;
  }
  state.temperature_c = hottest_zone(root_ + "/sys/class/thermal");
  state.clock_mhz = mean_clock(root_ + "/proc/cpuinfo");
  read_network(root_ + "/proc/net/dev", state);
  return state;
}

}  // namespace thrice::hardware
