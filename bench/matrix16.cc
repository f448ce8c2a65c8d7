// Products of f16 or bf16 on a CUDA card: schedules of wgmma16 and mma and all of cuBLASLt's answers in both
// layouts of B (wgmma16: columns' depth following in memory, as PyTorch keeps weights) are screened, then the
// best of each side and the rule's choice are checked and timed in turns.
//   bench_matrix16 [--device cuda:0] [--shape MxNxK,...] [--dtype bf16] [--finalists 3] [--out FILE] [--limit
//   SECONDS]
// ZxMxNxK is a batch of Z products. Burst: after 20 ms of rest and 3 warm launches. Sustained: half a second
// back to back. Launches under 0.5 ms in batches; warm second cache. Error: 512 elements against float64 sums
// on the host: norm, limit 2^-8 (the result is rounded to 8 bits) or 2^-11. No shape is begun after the
// limit.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "backend/backend.h"
#include "backend/cross_device.h"
#include "base/hash.h"
#include "bench/one_operator.h"
#include "family/matmul/matmul.h"
#include "family/prelude.h"
#include "ir/check.h"
#include "ir/tensor.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Schedule;

struct Shape {
  int64_t z, m, n, k;
  std::string str() const {
    return z == 1 ? fmt::format("{}x{}x{}", m, n, k) : fmt::format("{}x{}x{}x{}", z, m, n, k);
  }
  double flop() const { return 2.0 * static_cast<double>(z * m * n) * static_cast<double>(k); }
};
const std::vector<Shape> kShapes = {
    {1, 4096, 4096, 4096}, {1, 8192, 8192, 8192}, {1, 1024, 1024, 1024}, {1, 2048, 768, 768},
    {1, 2048, 3072, 768},  {1, 2048, 768, 3072},  {1, 16, 4096, 4096},   {1, 64, 12288, 4096},
    {1, 128, 128, 65536},  {96, 512, 512, 64},    {1, 8205, 2949, 5921}, {1, 333, 776, 2048},
    {1, 5000, 3000, 1000}, {1, 4095, 4095, 4096}, {1, 12345, 640, 2560}, {1, 197, 3072, 768},
    {1, 77, 1280, 1280},   {1, 3000, 256, 1024},  {1, 2049, 1025, 512},  {1, 1500, 7000, 264}};

struct Candidate {
  Schedule schedule;
  bool trans_b = false;
  artifact::KernelSource source;
  artifact::KernelBinary binary;
  std::vector<backend::RecordedLaunch> launches;
  double screened = 1e30, burst = 0, sustained = 0, error = 0;
  std::vector<double> samples;
  bool is_default = false;
  bool is_library() const { return schedule.tactic == "cublaslt"; }
  std::string name() const { return fmt::format("{} {}", trans_b ? "nt" : "nn", schedule.str()); }
};

void each_choice(const std::vector<artifact::Parameter>& parameters, size_t at, Schedule& s,
                 const std::function<void()>& use) {
  if (at == parameters.size()) return use();
  for (const int64_t choice : parameters[at].choices) {
    s.values.emplace_back(parameters[at].name, choice);
    each_choice(parameters, at + 1, s, use);
    s.values.pop_back();
  }
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

class Bench {
 public:
  Bench(const std::string& device, DType dtype) : dtype_(dtype) {
    is_card_ = device.find("sm_") == std::string::npos;
    device_ = is_card_ ? backend::open_device(device) : backend::open_cross_device(device.substr(5));
    if (is_card_) stream_ = device_->make_stream();
  }

  void run(const Shape& s, size_t finalists) {
    std::vector<Candidate> all = candidates(s);
    compile(all);
    if (!is_card_) return;
    fill(s);
    for (Candidate& c : all) try {
        load(s, c);
        c.screened = sample(c, 2);
      } catch (const Error& error) {
        fmt::print("  {}: {}\n", c.name(), error.what());
      }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.screened < b.screened; });
    std::vector<Candidate*> last;
    for (const bool library : {true, false}) {
      size_t taken = 0;
      for (Candidate& c : all)
        if (c.is_library() == library && c.screened < 1e29 && (taken < finalists || c.is_default)) try {
            check(s, c);
            last.push_back(&c);
            ++taken;
          } catch (const Error& error) {
            fmt::print("  {}: {}\n", c.name(), error.what());
          }
    }
    for (int round = 0; round < 7; ++round)
      for (Candidate* c : last) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        c->samples.push_back(sample(*c, 3));
      }
    for (Candidate* c : last) {
      c->burst = median(c->samples);
      c->sustained = sustained(*c);
    }
    report(s, last);
  }

  std::string json(const std::string& command) const {
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    const auto& spec = device_->spec();
    return fmt::format(
        "{{\"schema\": 1,\n \"runs\": [{{\"id\": \"matrix16\", \"date\": \"{}\", \"command\": \"{}\", "
        "\"environment\": {{\"device\": \"{}\", \"driver\": \"{}\", \"cublaslt\": \"{}\"}}}}],\n \"cases\": "
        "[\n{}\n ]}}\n",
        date, command, spec.name, spec.driver, spec.cublaslt, cases_);
  }

 private:
  ir::Workload workload(const Shape& s, bool trans_b) const {
    std::vector<int64_t> a{s.m, s.k},
        b = trans_b ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n};
    if (s.z > 1)
      for (auto* shape : {&a, &b}) shape->insert(shape->begin(), s.z);
    ir::Attributes attrs;
    if (trans_b) attrs["trans_b"] = int64_t{1};
    ir::Workload w = bench::one_operator(ir::Op::matmul, {a, b}, attrs, dtype_);
    w.graph.value(w.graph.inputs[1]).is_weight = true;
    return w;
  }

  std::vector<Candidate> candidates(const Shape& s) {
    std::vector<Candidate> all;
    for (const bool trans_b : {false, true}) {
      const ir::Workload w = workload(s, trans_b);
      const auto facts = ir::facts_at(w.graph, {});
      const auto& family = family::matmul_family();
      const auto add = [&](const Schedule& schedule, bool is_default) {
        Candidate c;
        c.schedule = schedule;
        c.trans_b = trans_b;
        c.is_default = is_default;
        const auto text = family.emit(w, schedule, device_->spec());
        c.source.language = artifact::Language::kCuda;
        c.source.text = family::prelude(c.source.language) + text.text;
        c.source.kernels = text.kernels;
        c.source.key = hash_hex(c.source.text + schedule.str());
        all.push_back(std::move(c));
      };
      if (trans_b) add(family.default_schedule(w, facts, device_->spec()), true);
      for (const auto& tactic : family.space(w, facts, device_->spec()).tactics) {
        if (tactic.tactic != "cublaslt" && tactic.tactic != "wgmma16") continue;
        Schedule schedule{tactic.family, tactic.tactic, {}};
        each_choice(tactic.parameters, 0, schedule, [&] {
          if (family.illegal(w, schedule, device_->spec())) return;
          if (tactic.tactic == "wgmma16") {  // of the depths of the ring only the most that fit, up to six
            if (!trans_b || (schedule.get("blocks") == 0) != (schedule.get("split") > 1)) return;
            if (schedule.get("split") > 1 && schedule.get("tile_n") > 128) return;
            for (const auto& parameter : tactic.parameters)
              if (parameter.name == "stages")
                for (const int64_t more : parameter.choices) {
                  Schedule deeper = schedule;
                  for (auto& [name, value] : deeper.values)
                    if (name == "stages") value = more;
                  if (more > schedule.get("stages") && more <= 6 &&
                      !family.illegal(w, deeper, device_->spec()))
                    return;
                }
            if (schedule.get("stages") > 6) return;
          }
          add(schedule, false);
        });
      }
    }
    return all;
  }

  void compile(std::vector<Candidate>& all) {
    std::mutex mutex;
    size_t next = 0;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back([&] {
        const auto compiler = backend::cross_compiler(device_->spec().architecture);
        for (;;) {
          Candidate* c = nullptr;
          {
            const std::lock_guard lock(mutex);
            while (next < all.size() && all[next].is_library()) ++next;
            if (next == all.size()) return;
            c = &all[next++];
          }
          try {
            c->binary = compiler->compile(c->source);
          } catch (const Error& error) {
            const std::lock_guard lock(mutex);
            fmt::print("{}: {}\n", c->name(), error.what());
          }
        }
      });
    for (std::thread& t : threads) t.join();
  }

  void fill(const Shape& s) {
    buffers_.clear();
    const auto random = [&](int64_t count, unsigned seed) {
      ir::Tensor t(dtype_, {count});
      std::vector<std::thread> threads;
      for (int64_t part = 0; part < 16; ++part)
        threads.emplace_back([&t, count, part, seed] {
          std::mt19937 engine(seed * 16 + static_cast<unsigned>(part));
          std::normal_distribution<double> normal;
          for (int64_t i = part * count / 16; i < (part + 1) * count / 16; ++i) t.set(i, normal(engine));
        });
      for (std::thread& thread : threads) thread.join();
      return t;
    };
    a_ = random(s.z * s.m * s.k, 1);
    b_ = random(s.z * s.k * s.n, 2);  // [z][k][n]
    ir::Tensor turned(dtype_, {s.z * s.k * s.n});
    const auto* from = reinterpret_cast<const uint16_t*>(b_.data());
    auto* to = reinterpret_cast<uint16_t*>(turned.mutable_data());
    for (int64_t z = 0; z < s.z; ++z)
      for (int64_t k = 0; k < s.k; ++k)
        for (int64_t n = 0; n < s.n; ++n) to[(z * s.n + n) * s.k + k] = from[(z * s.k + k) * s.n + n];
    for (const ir::Tensor* t : {&a_, &b_, &turned}) {
      buffers_.push_back({device_->allocate(t->bytes()), 0, t->bytes()});
      stream_->copy_to_device(buffers_.back(), {t->data(), t->bytes()});
    }
    const auto bytes = static_cast<size_t>(s.z * s.m * s.n * 2);
    buffers_.push_back({device_->allocate(bytes), 0, bytes});
  }

  void load(const Shape& s, Candidate& c) {
    const ir::Workload w = workload(s, c.trans_b);
    const auto plan = family::matmul_family().launch(w, c.schedule, ir::facts_at(w.graph, {}));
    if (c.is_library()) c.binary = device_->compiler()->compile(c.source);
    const auto program = device_->load(c.binary, c.source.kernels);
    std::vector<backend::BufferSpan> buffers{buffers_[0], buffers_[c.trans_b ? 2 : 1], buffers_[3]};
    for (const int64_t bytes : plan.temporary_bytes)
      buffers.push_back({device_->allocate(static_cast<size_t>(std::max<int64_t>(bytes, 512))), 0,
                         static_cast<size_t>(bytes)});
    for (const auto& launch : plan.launches) {
      const auto ints = std::as_bytes(std::span<const int32_t>(launch.extents));
      const backend::BufferSpan extents{device_->allocate(std::max<size_t>(512, ints.size())), 0,
                                        ints.size()};
      if (!ints.empty()) stream_->copy_to_device(extents, ints);
      c.launches.push_back({program, launch, buffers, extents});
    }
  }

  void check(const Shape& s, Candidate& c) {
    stream_->fill(buffers_[3], std::byte{0xff});
    for (const auto& launch : c.launches) stream_->launch(launch);
    ir::Tensor got(dtype_, {s.z * s.m * s.n});
    stream_->copy_to_host({got.mutable_data(), got.bytes()}, buffers_[3]);
    std::mt19937_64 random(7);
    double wrong = 0, norm = 0;
    for (int i = 0; i < 512; ++i) {
      const auto pick = [&](int64_t below) {
        return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
      };
      const int64_t z = pick(s.z), m = pick(s.m), n = pick(s.n);
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += a_.as_double((z * s.m + m) * s.k + k) * b_.as_double((z * s.k + k) * s.n + n);
      const double e = got.as_double((z * s.m + m) * s.n + n) - sum;
      wrong += e * e;
      norm += sum * sum;
    }
    c.error = std::sqrt(wrong / norm);
    if (!(c.error <= limit())) throw Error(Code::kWrongResult, fmt::format("error {:.2e}", c.error));
  }
  double limit() const { return dtype_ == DType::kBF16 ? 0x1p-8 : 0x1p-11; }

  // Microseconds a launch; warm launches first.
  double sample(Candidate& c, int warm) {
    const auto go = [&](int count) {
      for (int i = 0; i < count; ++i)
        for (const auto& launch : c.launches)
          if (!launch.launch.once) stream_->launch(launch);
    };
    go(warm);
    const int count = c.screened < 1e29 ? std::clamp(static_cast<int>(500 / c.screened), 1, 20) : 5;
    const auto begin = stream_->record_event();
    go(count);
    const auto end = stream_->record_event();
    return end->microseconds_since(*begin) / count;
  }

  double sustained(Candidate& c) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<double> samples;
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(300))
      samples.push_back(sample(c, 0));
    samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
    return median(samples);
  }

  void report(const Shape& s, const std::vector<Candidate*>& last) {
    const Candidate *ours = nullptr, *rival = nullptr, *by_rule = nullptr;
    for (const Candidate* c : last) {
      const Candidate*& best = c->is_library() ? rival : ours;
      if (best == nullptr || c->burst < best->burst) best = c;
      if (c->is_default) by_rule = c;
    }
    fmt::print("{}\n", s.str());
    for (const Candidate* c : last)
      fmt::print("  {:9.1f} us {:6.1f} TF/s  {:9.1f} us sustained  x{:.3f} / x{:.3f}  {:.1e}  {}{}\n",
                 c->burst, s.flop() / c->burst * 1e-6, c->sustained,
                 rival != nullptr ? rival->burst / c->burst : 0.0,
                 rival != nullptr ? rival->sustained / c->sustained : 0.0, c->error, c->name(),
                 c->is_default ? " (by rule)" : "");
    std::fflush(stdout);
    if (ours == nullptr || rival == nullptr) return;
    const std::string_view dtype = dtype_name(dtype_);
    cases_ += fmt::format(
        "{}  {{\"run\": \"matrix16\", \"suite\": \"matmul_{}\", \"name\": \"{}\", \"family\": \"matmul\", "
        "\"shape\": "
        "\"{}\", \"dtype\": \"{}\", \"numerics\": \"strict\", \"thrice_us\": {:.2f}, \"thrice_own_us\": "
        "{:.2f}, "
        "\"thrice_sustained_us\": {:.2f}, \"rivals\": {{\"default_schedule\": {:.2f}, \"cublaslt\": {:.2f}, "
        "\"cublaslt_sustained\": {:.2f}}}, \"error\": {:.3e}, \"error_limit\": {:.3e}, \"tactic\": \"{}\", "
        "\"schedule\": \"{}\"}}",
        cases_.empty() ? "" : ",\n", dtype, s.str(), s.str(), dtype, ours->burst, ours->burst,
        ours->sustained, by_rule ? by_rule->burst : -1.0, rival->burst, rival->sustained, ours->error,
        limit(), ours->schedule.tactic, ours->name());
  }

  DType dtype_;
  std::string cases_;
  bool is_card_ = false;
  backend::DevicePtr device_;
  std::unique_ptr<backend::Stream> stream_;
  std::vector<backend::BufferSpan> buffers_;  // A, B, B transposed, C
  ir::Tensor a_, b_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cuda:0", only, out, dtype = "bf16", finalists = "3", limit = "1e9",
              command = "bench_matrix16";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    std::map<std::string, std::string*> flags = {{"--device", &device}, {"--shape", &only},
                                                 {"--out", &out},       {"--dtype", &dtype},
                                                 {"--limit", &limit},   {"--finalists", &finalists}};
    if (flags.count(flag) == 0) {
      std::cerr << "no flag '" << flag << "'; the head of bench/matrix16.cc names them\n";
      return 2;
    }
    *flags[flag] = argv[i + 1];
    if (flag != "--out") command += " " + flag + " " + argv[i + 1];
  }
  if (dtype != "bf16" && dtype != "f16") {
    std::cerr << "--dtype '" << dtype << "' is neither bf16 nor f16\n";
    return 2;
  }
  try {
    Bench bench(device, dtype == "bf16" ? DType::kBF16 : DType::kF16);
    const auto start = std::chrono::steady_clock::now();
    bool any = false;
    for (const Shape& s : kShapes) {
      if (!only.empty() && ("," + only + ",").find("," + s.str() + ",") == std::string::npos) continue;
      any = true;
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
          std::stod(limit)) {
        fmt::print("{}: not begun, the limit is over\n", s.str());
        continue;
      }
      bench.run(s, static_cast<size_t>(std::stoi(finalists)));
      if (!out.empty())
        std::ofstream(out) << bench.json(command);  // after every shape: nothing is lost when it is stopped
    }
    if (!any) {
      std::cerr << "--shape '" << only << "' names none of:";
      for (const Shape& s : kShapes) std::cerr << " " << s.str();
      std::cerr << "\n";
      return 2;
    }
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  } catch (const std::invalid_argument&) {
    std::cerr << "--finalists '" << finalists << "' or --limit '" << limit << "' is not a number\n";
    return 2;
  }
  return 0;
}
