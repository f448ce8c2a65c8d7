// A libnvidia-ml.so.1 that tells what a script says, so that code that watches cards is tested without one.
// FAKE_NVML_SCRIPT names a text file: lines `key values...`, frames divided by `---`. A frame begins as a
// copy of the one before; each call of nvmlDeviceGetCount_v2 (one a sample) goes to the next frame, and the
// last one stays.
//   cards 2                        card 1 (later lines are about this card; 0 at the start of a frame)
//   temperature 60                 sm_clock 1980        memory_clock 2619     power_mw 120000
//   busy 30                        memory_busy 10       sm_use 25             throttle 0x40
//   memory_total 150000000000      memory_free 100000000000
//   process 1234 5000000           processes none       name Fake H200        uuid GPU-0
//   gpm 1 (has counters)           error DeviceGetTemperature 15 (that function gives this code; 0 ends it;
//   `error * 15`)
// Built twice: with FAKE_NVML_OLD it lacks what drivers before 525 lack.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Card {
  std::map<std::string, unsigned long long> numbers;
  std::string name = "Fake card", uuid;
  std::vector<std::pair<unsigned, unsigned long long>> processes;
};
struct Frame {
  std::vector<Card> cards = std::vector<Card>(1);
  std::map<std::string, int> errors;
};
struct State {
  std::vector<Frame> frames;
  size_t at = 0, reads = 0;
  int init_error = 0;
};

State& state() {
  static State s;
  return s;
}

void read_line(const std::string& line, Frame& frame, size_t& card, State& s) {
  std::istringstream words(line);
  std::string key, text;
  if (!(words >> key) || key[0] == '#') return;
  std::getline(words >> std::ws, text);
  std::istringstream values(text);
  if (key == "cards") {
    frame.cards.resize(std::stoul(text));
  } else if (key == "card") {
    card = std::stoul(text);
  } else if (key == "init") {
    s.init_error = std::stoi(text);
  } else if (key == "error") {
    std::string function;
    values >> function;
    values >> frame.errors[function];
  } else if (key == "name") {
    frame.cards.at(card).name = text;
  } else if (key == "uuid") {
    frame.cards.at(card).uuid = text;
  } else if (key == "processes") {
    frame.cards.at(card).processes.clear();
  } else if (key == "process") {
    std::string pid, bytes;
    values >> pid >> bytes;
    frame.cards.at(card).processes.emplace_back(std::stoul(pid), std::stoull(bytes, nullptr, 0));
  } else {
    frame.cards.at(card).numbers[key] = std::stoull(text, nullptr, 0);
  }
}

void load() {
  State& s = state();
  s = State{};
  Frame frame;
  size_t card = 0;
  const char* path = std::getenv("FAKE_NVML_SCRIPT");
  std::ifstream file(path ? path : "");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("---", 0) == 0) {
      s.frames.push_back(frame);
      card = 0;
    } else {
      read_line(line, frame, card, s);
    }
  }
  s.frames.push_back(frame);
}

const Frame& now() { return state().frames[state().at]; }
Card& card_of(void* handle) { return state().frames[state().at].cards[reinterpret_cast<size_t>(handle) - 1]; }

// The code that the script gives to this function, or 3 (not supported) where the card has no such number.
int code_of(const std::string& function) {
  for (const std::string& name : {function, std::string("*")})
    if (const auto it = now().errors.find(name); it != now().errors.end() && it->second) return it->second;
  return 0;
}
template <class T>
int number(const std::string& function, void* handle, const std::string& key, T* to) {
  if (const int code = code_of(function)) return code;
  const auto& numbers = card_of(handle).numbers;
  const auto it = numbers.find(key);
  if (it == numbers.end()) return 3;
  *to = static_cast<T>(it->second);
  return 0;
}
int text(const std::string& function, const std::string& from, char* to, unsigned size) {
  if (const int code = code_of(function)) return code;
  if (from.size() >= size) return 7;
  std::strcpy(to, from.c_str());
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  load();
  return state().init_error;
}
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  State& s = state();
  if (s.reads++ > 0 && s.at + 1 < s.frames.size()) ++s.at;
  if (const int code = code_of("DeviceGetCount")) return code;
  *count = static_cast<unsigned>(now().cards.size());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (const int code = code_of("DeviceGetHandleByIndex")) return code;
  if (index >= now().cards.size()) return 2;
  *handle = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetName(void* h, char* to, unsigned size) {
  return text("DeviceGetName", card_of(h).name, to, size);
}
int nvmlDeviceGetTemperature(void* h, unsigned, unsigned* to) {
  return number("DeviceGetTemperature", h, "temperature", to);
}
int nvmlDeviceGetMemoryInfo(void* h, unsigned long long* to) {  // total, free, used
  if (const int code = number("DeviceGetMemoryInfo", h, "memory_total", to)) return code;
  if (const int code = number("DeviceGetMemoryInfo", h, "memory_free", to + 1)) return code;
  to[2] = to[0] - to[1];
  return 0;
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetUUID(void* h, char* to, unsigned size) {
  return text("DeviceGetUUID", card_of(h).uuid, to, size);
}
int nvmlDeviceGetClockInfo(void* h, unsigned which, unsigned* to) {
  return number("DeviceGetClockInfo", h, which == 1 ? "sm_clock" : "memory_clock", to);
}
int nvmlDeviceGetPowerUsage(void* h, unsigned* to) {
  return number("DeviceGetPowerUsage", h, "power_mw", to);
}
int nvmlDeviceGetEnforcedPowerLimit(void* h, unsigned* to) {
  return number("DeviceGetEnforcedPowerLimit", h, "power_limit_mw", to);
}
int nvmlDeviceGetUtilizationRates(void* h, unsigned* to) {  // gpu, memory
  if (const int code = number("DeviceGetUtilizationRates", h, "busy", to)) return code;
  to[1] = 0;
  number("DeviceGetUtilizationRates", h, "memory_busy", to + 1);
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* h, unsigned long long* to) {
  return number("DeviceGetCurrentClocksThrottleReasons", h, "throttle", to);
}
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void* h, unsigned* count, ProcessInfo* to) {
  if (const int code = code_of("DeviceGetComputeRunningProcesses")) return code;
  const auto& processes = card_of(h).processes;
  const unsigned room = *count;
  *count = static_cast<unsigned>(processes.size());
  if (processes.size() > room) return 7;
  for (size_t i = 0; i < processes.size(); ++i) to[i] = {processes[i].first, processes[i].second, 0, 0};
  return 0;
}
int nvmlGpmQueryDeviceSupport(void* h, unsigned* support) {  // version, is_supported
  if (const int code = code_of("GpmQueryDeviceSupport")) return code;
  support[1] = card_of(h).numbers.count("gpm") ? 1 : 0;
  return 0;
}
struct GpmSample {
  unsigned long long sm_use;
};
int nvmlGpmSampleAlloc(GpmSample** sample) {
  *sample = new GpmSample{};
  return 0;
}
int nvmlGpmSampleFree(GpmSample* sample) {
  delete sample;
  return 0;
}
int nvmlGpmSampleGet(void* h, GpmSample* sample) {
  return number("GpmSampleGet", h, "sm_use", &sample->sm_use);
}
struct GpmMetrics {
  unsigned version, count;
  GpmSample *first, *second;
  struct {
    unsigned id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
  } metrics[1];
};
// As on a card: two threads in here at the same time, and the process is gone.
int nvmlGpmMetricsGet(GpmMetrics* to) {
  static std::atomic<int> inside{0};
  if (inside.exchange(1) != 0) std::abort();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  inside = 0;
  if (to->version != 1 || to->count != 1 || to->metrics[0].id != 2 || to->first == to->second) return 2;
  to->metrics[0].result = 0;
  to->metrics[0].value = static_cast<double>(to->second->sm_use);
  return 0;
}
#endif
}
