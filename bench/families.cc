// GF/s of every tactic of the heavy families at its default schedule, beside single-thread C++ loops (-O2),
// on an OpenCL device; every result is compared with the loops' before it is timed.
//   bench_families [--device opencl:0] [--suite ocr|mobilenet|resnet|matmul] [--out FILE]
// Writes the schema of docs (one case a shape: the default schedule; other tactics and C++ loops are its
// rivals). Times: median of 9, after 2 warm launches; whole launch, device idle before and after.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <thrice/status.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>

#include "backend/backend.h"
#include "bench/naive_loops.h"
#include "bench/one_operator.h"
#include "family/conv/conv.h"
#include "family/matmul/matmul.h"
#include "family/prelude.h"
#include "ir/inputs.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using bench::microseconds;
using Ints = std::vector<int64_t>;

struct Case {
  const char* suite;
  Ints x, w, strides, pads;  // conv; strides empty: matmul of x and w
  int64_t group = 1;
  int count = 1;  // how often the model runs it
};

// PP-OCRv4 recognition at 48 x 320, MobileNetV2 and ResNet-50 at 224 x 224 (layers that carry most of the
// work).
const std::vector<Case> kCases = {
    {"ocr", {1, 3, 48, 320}, {16, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}},
    {"ocr", {1, 32, 24, 160}, {32, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, 32},
    {"ocr", {1, 64, 24, 160}, {64, 64, 1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"ocr", {1, 64, 24, 160}, {64, 1, 3, 3}, {2, 1}, {1, 1, 1, 1}, 64},
    {"ocr", {1, 128, 12, 160}, {128, 128, 1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"ocr", {1, 128, 12, 160}, {128, 1, 3, 3}, {1, 2}, {1, 1, 1, 1}, 128},
    {"ocr", {1, 240, 12, 80}, {240, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}, 240, 4},
    {"ocr", {1, 240, 12, 80}, {240, 240, 1, 1}, {1, 1}, {0, 0, 0, 0}, 1, 4},
    {"ocr", {1, 240, 1, 1}, {60, 240, 1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"ocr", {1, 480, 6, 80}, {480, 480, 1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"ocr", {1, 480, 6, 80}, {480, 1, 5, 5}, {2, 1}, {2, 2, 2, 2}, 480},
    {"ocr", {1, 480, 3, 80}, {480, 480, 1, 1}, {1, 1}, {0, 0, 0, 0}, 1, 2},
    {"ocr", {1, 480, 1, 40}, {60, 480, 1, 3}, {1, 1}, {0, 1, 0, 1}},
    {"ocr", {1, 960, 1, 40}, {60, 960, 1, 3}, {1, 1}, {0, 1, 0, 1}},
    {"ocr", {1, 40, 120}, {120, 360}, {}, {}, 1, 2},
    {"ocr", {1, 8, 40, 15}, {1, 8, 15, 40}, {}, {}, 1, 2},
    {"ocr", {1, 40, 120}, {120, 6625}, {}, {}},
    {"mobilenet", {1, 3, 224, 224}, {32, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}},
    {"mobilenet", {1, 96, 112, 112}, {96, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, 96},
    {"mobilenet", {1, 144, 56, 56}, {24, 144, 1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"mobilenet", {1, 384, 14, 14}, {384, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, 384},
    {"mobilenet", {1, 320, 7, 7}, {1280, 320, 1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"resnet", {1, 3, 224, 224}, {64, 3, 7, 7}, {2, 2}, {3, 3, 3, 3}},
    {"resnet", {1, 64, 56, 56}, {64, 64, 3, 3}, {1, 1}, {1, 1, 1, 1}},
    {"resnet", {1, 256, 56, 56}, {512, 256, 1, 1}, {2, 2}, {0, 0, 0, 0}},
    {"resnet", {1, 256, 14, 14}, {256, 256, 3, 3}, {1, 1}, {1, 1, 1, 1}},
    {"resnet", {1, 512, 7, 7}, {512, 512, 3, 3}, {1, 1}, {1, 1, 1, 1}},
    {"matmul", {512, 512}, {512, 512}, {}, {}},
    {"matmul", {1, 2048}, {2048, 1000}, {}, {}},
    {"matmul", {16, 1024}, {1024, 1024}, {}, {}},
    {"matmul", {64, 768}, {768, 3072}, {}, {}},
};

ir::Workload make_workload(const Case& c) {
  if (c.strides.empty()) return bench::one_operator(ir::Op::matmul, {c.x, c.w});
  return bench::one_operator(ir::Op::conv, {c.x, c.w},
                             {{"strides", c.strides}, {"pads", c.pads}, {"group", c.group}});
}

std::string list_text(const Ints& v) {
  std::string text;
  for (const int64_t i : v) text += (text.empty() ? "" : "x") + std::to_string(i);
  return text;
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(": ") + 2);
  return "unknown";
}

class Bench {
 public:
  Bench(const std::string& device, std::string command) : command_(std::move(command)) {
    device_ = backend::open_device(device);
    stream_ = device_->make_stream();
  }

  void run(const Case& c) {
    const ir::Workload w = make_workload(c);
    const auto inputs = ir::make_inputs(w.graph, {}, ir::InputKind::kNormal, 1);
    std::vector<ir::Fact> facts;
    for (const auto& t : inputs) facts.push_back({{t.dtype(), ir::to_shape(t.shape())}, &t, std::nullopt});
    const auto& family = c.strides.empty() ? family::matmul_family() : family::conv_family();
    const auto bound = ir::bind(w.graph, facts);
    const Ints out = ir::static_shape(bound[static_cast<size_t>(w.graph.outputs[0])].type.shape);
    std::vector<float> expected(static_cast<size_t>(ir::num_elements(out)));
    const auto* x = reinterpret_cast<const float*>(inputs[0].data());
    const auto* weights = reinterpret_cast<const float*>(inputs[1].data());
    const double flops = family::count_work(w, facts).flops;
    const double rival = microseconds(
        [&] {
          if (!c.strides.empty())
            return bench::naive_conv(x, weights, expected.data(),
                                     {c.x[0], c.x[1], c.x[2], c.x[3], c.w[0], c.w[1], c.w[2], c.w[3], out[2],
                                      out[3], c.group, c.strides[0], c.strides[1], c.pads[0], c.pads[1]});
          const int64_t m = c.x[c.x.size() - 2], k = c.x.back(), n = c.w.back();
          bench::naive_matmul(x, weights, expected.data(), ir::num_elements(c.x) / m / k, m, n, k,
                              c.w.size() == 2);
        },
        flops > 5e8 ? 1 : 3);
    const std::string name = fmt::format("{}_f32_{}_{}{}", family.name(), list_text(c.x), list_text(c.w),
                                         c.strides.empty() ? "" : "_s" + list_text(c.strides));
    Row row{rival, {}};
    const auto preferred = family.default_schedule(w, facts, device_->spec());
    for (const auto& tactic : family.space(w, facts, device_->spec()).tactics) {
      // The rule's parameters where the rule takes this tactic; else the legal candidate in the middle of its
      // space.
      artifact::Schedule s = preferred;
      if (s.tactic != tactic.tactic) s = middle(w, family, tactic);
      try {
        time(w, family, s, facts, inputs, expected, flops, name, s == preferred, row);
      } catch (const Error& error) {
        fmt::print("{:58} {:12} {}\n", name, tactic.tactic, error.what());
      }
    }
    if (row.us > 0) add_case(c, name, std::string(family.name()), row);
  }

  std::string json() const {
    const auto& spec = device_->spec();
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    utsname host{};
    uname(&host);
    double load = 0;  // what else the machine did: times of a busy one differ by factors
    getloadavg(&load, 1);
    return fmt::format(
        "{{\"schema\": 1,\n \"runs\": [{{\"id\": \"families\", \"date\": \"{}\", \"command\": \"{}\", "
        "\"environment\": "
        "{{\"device\": \"{}\", \"driver\": \"{}\", \"host_cpu\": \"{}\", \"cores\": {}, \"kernel\": "
        "\"{}\", \"load_average\": {:.1f}}}}}],\n "
        "\"cases\": [\n{}\n ]}}\n",
        date, command_, spec.name, spec.driver, cpu_name(), spec.compute_units, host.release, load, cases_);
  }

 private:
  // One shape: the default schedule, and its rivals: C++ loops and the other tactics.
  struct Row {
    double cpp_us = 0;
    std::string rivals;
    double us = 0, error = 0;
    artifact::Schedule schedule;
  };
  static constexpr double kErrorLimit = 1e-5;  // relative, of the whole result

  void add_case(const Case& c, const std::string& name, const std::string& family, const Row& row) {
    cases_ += fmt::format(
        "{}  {{\"run\": \"families\", \"suite\": \"{}\", \"name\": \"{}\", \"family\": \"{}\", \"shape\": "
        "\"{} {} x{}\", \"dtype\": \"f32\", \"numerics\": \"strict\", \"thrice_us\": {:.1f}, \"rivals\": "
        "{{\"naive_cpp_one_thread\": {:.1f}{}}}, \"error\": {:.2e}, \"error_limit\": {:.0e}, \"tactic\": "
        "\"{}\", \"schedule\": \"{}\", \"note\": \"default schedule; rivals tactic_X: tactic X, a schedule "
        "in the "
        "middle of its space\"}}",
        cases_.empty() ? "" : ",\n", c.suite, name, family, list_text(c.x), list_text(c.w), c.count, row.us,
        row.cpp_us, row.rivals, row.error, kErrorLimit, row.schedule.tactic, row.schedule.str());
  }

  artifact::Schedule middle(const ir::Workload& w, const family::Family& family,
                            const artifact::TacticSpace& tactic) {
    artifact::Schedule best{tactic.family, tactic.tactic, {}};
    for (const double place : {0.5, 0.6, 0.4, 0.3, 0.7, 0.0, 1.0}) {
      best.values.clear();
      for (const auto& p : tactic.parameters)
        best.values.emplace_back(
            p.name, p.choices[static_cast<size_t>(place * static_cast<double>(p.choices.size() - 1))]);
      if (!family.illegal(w, best, device_->spec())) break;
    }
    return best;
  }

  void time(const ir::Workload& w, const family::Family& family, const artifact::Schedule& s,
            const std::vector<ir::Fact>& facts, const std::vector<ir::Tensor>& inputs,
            const std::vector<float>& expected, double flops, const std::string& name, bool is_default,
            Row& row) {
    artifact::KernelSource source;
    const auto text = family.emit(w, s, device_->spec());
    source.text = family::prelude(source.language) + text.text;
    source.kernels = text.kernels;
    source.key = name + s.str();
    const auto program = device_->load(device_->compiler()->compile(source), source.kernels);
    const auto plan = family.launch(w, s, facts);
    std::vector<backend::BufferSpan> buffers;
    const auto allocate = [&](size_t bytes) {
      buffers.push_back({device_->allocate((bytes + 255) / 256 * 256), 0, bytes});
    };
    for (const auto& t : inputs) {
      allocate(t.bytes());
      stream_->copy_to_device(buffers.back(), {t.data(), t.bytes()});
    }
    allocate(expected.size() * sizeof(float));
    stream_->fill(buffers.back(), std::byte{0xff});
    const auto output = buffers.back();
    std::vector<backend::RecordedLaunch> launches;
    for (const auto& launch : plan.launches) {
      const auto ints = std::as_bytes(std::span<const int32_t>(launch.extents));
      const backend::BufferSpan extents{
          device_->allocate(std::max<size_t>(256, (ints.size() + 255) / 256 * 256)), 0, ints.size()};
      if (!ints.empty()) stream_->copy_to_device(extents, ints);
      launches.push_back({program, launch, buffers, extents});
    }
    const auto once = [&] {
      for (const auto& launch : launches) stream_->launch(launch);
      stream_->synchronize();
    };
    once();
    std::vector<float> got(expected.size());
    stream_->copy_to_host(std::as_writable_bytes(std::span<float>(got)), output);
    stream_->synchronize();
    double difference = 0, norm = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += (got[i] - expected[i]) * static_cast<double>(got[i] - expected[i]);
      norm += expected[i] * static_cast<double>(expected[i]);
    }
    const double error = std::sqrt(difference / norm);
    if (!(error <= kErrorLimit)) throw Error(Code::kWrongResult, fmt::format("{}: error {}", s.str(), error));
    once();
    const double us = microseconds(once, 9);
    fmt::print("{:58} {:12} {:9.0f} us {:7.1f} GF/s  x{:6.1f} of C++ {:5.2f} GF/s {}{}\n", name, s.tactic, us,
               flops / us * 1e-3, row.cpp_us / us, flops / row.cpp_us * 1e-3, is_default ? "* " : "  ",
               s.str());
    std::fflush(stdout);
    if (!is_default) {
      row.rivals += fmt::format(", \"tactic_{}\": {:.1f}", s.tactic, us);
      return;
    }
    row.us = us;
    row.error = error;
    row.schedule = s;
  }

  std::string command_;
  backend::DevicePtr device_;
  std::unique_ptr<backend::Stream> stream_;
  std::string cases_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device = "opencl:0", suite, out, command = "bench_families";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    (flag == "--device" ? device : flag == "--suite" ? suite : out) = argv[i + 1];
    if (flag != "--out") command += " " + flag + " " + argv[i + 1];
  }
  try {
    Bench bench(device, command);
    for (const Case& c : kCases)
      if (suite.empty() || suite == c.suite) bench.run(c);
    if (!out.empty()) std::ofstream(out) << bench.json();
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
