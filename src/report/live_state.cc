#include "report/live_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "report/table.h"

namespace thrice::report {
namespace {

using hardware::is_known;

// Bytes a second between two counters; unknown where either is, or where the counter began anew.
double rate(int64_t now, int64_t before, double seconds) {
  if (now < 0 || before < 0 || now < before || !(seconds > 0)) return hardware::kUnknown;
  return static_cast<double>(now - before) / seconds;
}
struct Rates {
  double received = hardware::kUnknown, sent = hardware::kUnknown;
};
Rates network(const hardware::Snapshot& now, const hardware::Snapshot* before) {
  if (!before) return {};
  const double seconds = (now.time_us - before->time_us) * 1e-6;
  return {rate(now.host.network_received_bytes, before->host.network_received_bytes, seconds),
          rate(now.host.network_sent_bytes, before->host.network_sent_bytes, seconds)};
}

// Collects the parts of a line whose numbers are known.
class Line {
 public:
  explicit Line(const std::string& name) : text_(fmt::format("{:<7}", name)) {}
  void add(double value, const char* form) {
    if (is_known(value)) add(fmt::format(fmt::runtime(form), value));
  }
  void add(const std::string& part) {
    text_ += (is_first_ ? " " : ", ") + part;
    is_first_ = false;
  }
  void add_memory(int64_t free, int64_t total) {
    if (free >= 0 && total >= 0)
      add(fmt::format("{} of {} free", bytes(static_cast<double>(free)), bytes(static_cast<double>(total))));
  }
  std::string str() const { return is_first_ ? text_ + " nothing known" : text_; }

 private:
  std::string text_;
  bool is_first_ = true;
};

double percent(double share) { return is_known(share) ? 100 * share : share; }

std::string host_line(const hardware::Snapshot& now, const hardware::Snapshot* before) {
  const hardware::HostState& h = now.host;
  Line line("host");
  line.add(percent(h.cpu_busy), "CPU {:.0f}% busy");
  line.add(h.load_average, "load {:.2f}");
  line.add(h.clock_mhz, "{:.0f} MHz");
  line.add(h.temperature_c, "{:.0f} °C");
  line.add_memory(h.memory_free_bytes, h.memory_total_bytes);
  const Rates rates = network(now, before);
  if (is_known(rates.received) && is_known(rates.sent))
    line.add(fmt::format("network {}/s in, {}/s out", bytes(rates.received), bytes(rates.sent)));
  return line.str();
}

std::string card_line(const hardware::DeviceState& d) {
  Line line(d.id);
  if (!d.problem.empty()) line.add(d.problem);
  line.add(d.temperature_c, "{:.0f} °C");
  line.add(d.sm_clock_mhz, "SM {:.0f} MHz");
  line.add(d.memory_clock_mhz, "memory {:.0f} MHz");
  line.add(d.power_w, "{:.0f} W");
  line.add(percent(d.sm_use), "SM use {:.0f}%");
  line.add(percent(d.busy), "busy {:.0f}%");
  line.add_memory(d.memory_free_bytes, d.memory_total_bytes);
  if (!d.throttle_reasons.empty())
    line.add(fmt::format("slowed down: {}", fmt::join(d.throttle_reasons, " + ")));
  std::vector<std::string> processes;
  for (const hardware::Process& p : d.processes)
    processes.push_back(p.memory_bytes < 0
                            ? std::to_string(p.pid)
                            : fmt::format("{} ({})", p.pid, bytes(static_cast<double>(p.memory_bytes))));
  if (!processes.empty()) line.add(fmt::format("processes {}", fmt::join(processes, " ")));
  return line.str();
}

nlohmann::json known(double value) { return is_known(value) ? nlohmann::json(value) : nlohmann::json(); }
nlohmann::json known(int64_t value) { return value >= 0 ? nlohmann::json(value) : nlohmann::json(); }

}  // namespace

std::vector<std::string> live_lines(const hardware::Snapshot& now, const hardware::Snapshot* before) {
  std::vector<std::string> lines = {host_line(now, before)};
  for (const hardware::DeviceState& d : now.devices) lines.push_back(card_line(d));
  return lines;
}

std::string live_json(const hardware::Snapshot& now, const hardware::Snapshot* before) {
  const hardware::HostState& h = now.host;
  const Rates rates = network(now, before);
  nlohmann::json j = {{"unix_time", now.unix_time},
                      {"host",
                       {{"cpu_busy", known(h.cpu_busy)},
                        {"load_average", known(h.load_average)},
                        {"temperature_c", known(h.temperature_c)},
                        {"clock_mhz", known(h.clock_mhz)},
                        {"memory_total_bytes", known(h.memory_total_bytes)},
                        {"memory_free_bytes", known(h.memory_free_bytes)},
                        {"network_received_bytes_per_s", known(rates.received)},
                        {"network_sent_bytes_per_s", known(rates.sent)}}},
                      {"devices", nlohmann::json::array()}};
  for (const hardware::DeviceState& d : now.devices) {
    nlohmann::json row = {{"id", d.id},
                          {"name", d.name},
                          {"uuid", d.uuid},
                          {"problem", d.problem.empty() ? nlohmann::json() : nlohmann::json(d.problem)},
                          {"temperature_c", known(d.temperature_c)},
                          {"sm_clock_mhz", known(d.sm_clock_mhz)},
                          {"memory_clock_mhz", known(d.memory_clock_mhz)},
                          {"power_w", known(d.power_w)},
                          {"busy", known(d.busy)},
                          {"memory_busy", known(d.memory_busy)},
                          {"sm_use", known(d.sm_use)},
                          {"memory_total_bytes", known(d.memory_total_bytes)},
                          {"memory_free_bytes", known(d.memory_free_bytes)},
                          {"throttle_reasons", d.throttle_reasons},
                          {"processes", nlohmann::json::array()}};
    for (const hardware::Process& p : d.processes)
      row["processes"].push_back({{"pid", p.pid}, {"memory_bytes", known(p.memory_bytes)}});
    j["devices"].push_back(row);
  }
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace thrice::report
