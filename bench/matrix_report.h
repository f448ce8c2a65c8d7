// What bench_matrix prints of a shape, and its file of results (bench/results_file.py says the form).
#pragma once
#include <fmt/format.h>
#include <thrice/dtype.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "bench/matrix_corner.h"
#include "target/device_spec.h"

namespace thrice::bench {

struct Measured {
  std::string name, tactic;  // "nt matmul/mma tile_m=64 ...", "mma"
  bool trans_b = false, is_library = false, is_default = false;
  double burst = 0, sustained = 0;  // us; 0: not measured
  double error = 0, bound = 0;      // of the norm; largest of |error| / (|A| |B|)
};

class MatrixReport {
 public:
  double copy_gbs = 0;  // read and written

  // `all`: what was timed in turns.
  void add(const MatrixShape& s, DType dtype, double limit, const std::vector<const Measured*>& all) {
    const double flop =
        2.0 * static_cast<double>(s.batches * s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    const double bytes = static_cast<double>(dtype_bytes(dtype)) *
                         static_cast<double>(s.batches * (s.m * s.k + s.k * s.n + s.m * s.n));
    const double floor = bytes / copy_gbs * 1e-3;
    const Measured *ours = nullptr, *rival = nullptr, *by_rule = nullptr;
    for (const Measured* c : all) {
      const Measured*& best = c->is_library ? rival : ours;
      if (best == nullptr || c->burst < best->burst) best = c;
    }
    for (const Measured* c : all)
      if (c->is_default && ours != nullptr && c->trans_b == ours->trans_b) by_rule = c;
    fmt::print("{}: {:.1f} us at the copy rate\n", s.str(), floor);
    for (const Measured* c : all)
      fmt::print(
          "  {:9.1f} us {:6.1f} TF/s  {:9.1f} us {:6.1f} TF/s sustained  x{:.2f}  {:.1e} {:.1e}  {}{}\n",
          c->burst, flop / c->burst * 1e-6, c->sustained, flop / c->sustained * 1e-6,
          rival != nullptr ? rival->burst / c->burst : 0.0, c->error, c->bound, c->name,
          c->is_default ? " (rule)" : "");
    std::fflush(stdout);
    if (ours == nullptr || rival == nullptr) return;
    const std::string type(dtype_name(dtype));
    for (const std::string suite : {"matmul", "skinny"}) {
      if (s.suites.find(suite) == std::string::npos && !(s.suites == "irregular" && suite == "matmul"))
        continue;
      cases_ += fmt::format(
          "{}  {{\"run\": \"matrix\", \"suite\": \"{}_{}\", \"name\": \"{}\", \"family\": \"matmul\", "
          "\"shape\": \"{}\", \"dtype\": \"{}\", \"numerics\": \"strict\", ",
          cases_.empty() ? "" : ",\n", suite, type, s.str(), s.str(), type);
      cases_ += fmt::format(
          "\"thrice_us\": {:.2f}, \"thrice_burst_us\": {:.2f}, \"thrice_sustained_us\": {:.2f}, "
          "\"rivals\": {{\"cublaslt_{}\": {:.2f}, \"cublaslt_{}_sustained\": {:.2f}",
          ours->burst, ours->burst, ours->sustained, type, rival->burst, type, rival->sustained);
      if (by_rule != nullptr) cases_ += fmt::format(", \"default_schedule\": {:.2f}", by_rule->burst);
      cases_ += fmt::format("}}, \"error\": {:.3e}, \"error_limit\": {:.3e}, ", ours->error, limit);
      if (suite == "skinny") cases_ += fmt::format("\"sol_us\": {:.2f}, \"sol_bound\": \"memory\", ", floor);
      cases_ += fmt::format(
          "\"tactic\": \"{}\", \"schedule\": \"{}\", \"note\": \"B is a weight: where it is packed, once "
          "before; all else at every run. By rule: {}\"}}",
          ours->tactic, ours->name, by_rule == nullptr ? "not measured" : by_rule->name);
    }
  }

  std::string json(const std::string& command, const target::DeviceSpec& spec) const {
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    return fmt::format(
        "{{\"schema\": 1,\n \"runs\": [{{\"id\": \"matrix\", \"date\": \"{}\", \"command\": \"{}\", "
        "\"environment\": {{\"device\": \"{}\", \"driver\": \"{}\", \"cublaslt\": \"{}\"}}, "
        "\"anchor\": {{\"copy_gbs\": {:.0f}}}}}],\n \"cases\": [\n{}\n ]}}\n",
        date, command, spec.name, spec.driver, spec.cublaslt, copy_gbs, cases_);
  }

 private:
  std::string cases_;
};

}  // namespace thrice::bench
