// float32 products on a CUDA card: every legal schedule of wgmma and some of mma are screened, then the best
// ones and the best of cuBLASLt's answers in both layouts of B are timed in turns.
//   bench_matrix [--device cuda:0] [--shape MxNxK,...] [--schedule TEXT] [--finalists 4] [--out FILE] [--keep
//   FOLDER]
// --keep FOLDER writes text and cubin of each schedule (for cuobjdump -res-usage) and, without a card
// (--device cuda:sm_90a), only that is done. Burst: after 20 ms of rest and 3 warm launches. Sustained: half
// a second back to back. Launches under 0.5 ms in batches; warm L2. Error: 512 elements of the result against
// float64 sums on the host: norm, and the largest |error| / (|A| |B|).
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
#include <thread>

#include "backend/backend.h"
#include "backend/cross_device.h"
#include "base/hash.h"
#include "bench/one_operator.h"
#include "family/matmul/matmul.h"
#include "family/prelude.h"
#include "ir/check.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Schedule;

struct Shape {
  int64_t m, n, k;
  std::string str() const { return fmt::format("{}x{}x{}", m, n, k); }
};
const std::vector<Shape> kShapes = {{1024, 1024, 1024}, {4096, 4096, 4096}, {8192, 8192, 8192},
                                    {16, 4096, 4096},   {64, 12288, 4096},  {2048, 768, 768},
                                    {2048, 3072, 768},  {2048, 768, 3072},  {128, 128, 65536}};

ir::Workload make_workload(const Shape& s, bool trans_b) {
  const std::vector<int64_t> b = trans_b ? std::vector<int64_t>{s.n, s.k} : std::vector<int64_t>{s.k, s.n};
  ir::Attributes attrs;
  if (trans_b) attrs["trans_b"] = int64_t{1};
  ir::Workload w = bench::one_operator(ir::Op::matmul, {{s.m, s.k}, b}, attrs);
  w.graph.value(w.graph.inputs[1]).is_weight = true;
  return w;
}

struct Candidate {
  Schedule schedule;
  bool trans_b = false;
  artifact::KernelSource source;
  artifact::KernelBinary binary;
  std::vector<backend::RecordedLaunch> launches;
  double screened = 1e30, burst = 0, sustained = 0, error = 0, bound = 0;
  std::vector<double> samples;
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
  Bench(const std::string& device, std::string keep, std::string filter)
      : keep_(std::move(keep)), filter_(std::move(filter)) {
    is_card_ = device.find("sm_") == std::string::npos;
    device_ = is_card_ ? backend::open_device(device) : backend::open_cross_device(device.substr(5));
    stream_ = device_->make_stream();
  }

  void run(const Shape& s, size_t finalists) {
    std::vector<Candidate> all = candidates(s);
    compile(all);
    if (!is_card_) return;
    fill(s);
    for (Candidate& c : all) try {
        load(s, c);
        check(s, c);
        c.screened = sample(c, 3);
      } catch (const Error& error) {
        fmt::print("  {}: {}\n", c.name(), error.what());
      }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.screened < b.screened; });
    std::vector<Candidate*> last;
    for (const bool library : {true, false}) {
      size_t taken = 0;
      for (Candidate& c : all)
        if (c.is_library() == library && c.screened < 1e29 && taken < (library ? 2 : finalists)) {
          last.push_back(&c);
          ++taken;
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

  const target::DeviceSpec& spec() const { return device_->spec(); }
  std::string json(const std::string& command) const {
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
    return fmt::format(
        "{{\"schema\": 1,\n \"runs\": [{{\"id\": \"matrix\", \"date\": \"{}\", \"command\": \"{}\", "
        "\"environment\": "
        "{{\"device\": \"{}\", \"driver\": \"{}\", \"cublaslt\": \"{}\"}}}}],\n \"cases\": [\n{}\n ]}}\n",
        date, command, spec().name, spec().driver, spec().cublaslt, cases_);
  }

 private:
  std::vector<Candidate> candidates(const Shape& s) {
    std::vector<Candidate> all;
    for (const bool trans_b : {false, true}) {
      const ir::Workload w = make_workload(s, trans_b);
      const auto facts = ir::facts_at(w.graph, {});
      const auto& family = family::matmul_family();
      for (const auto& tactic : family.space(w, facts, spec()).tactics) {
        const bool is_mma = tactic.tactic == "mma";
        if (tactic.tactic != "cublaslt" && tactic.tactic != "wgmma" && !is_mma) continue;
        Schedule schedule{tactic.family, tactic.tactic, {}};
        each_choice(tactic.parameters, 0, schedule, [&] {
          if (family.illegal(w, schedule, spec())) return;
          // Of mma's thousands, the corner that tuning mostly ends in.
          if (is_mma && (schedule.get("stages") != 3 || schedule.get("tile_k") != 32 ||
                         schedule.get("warps_m") != 2 || schedule.get("warps_n") != 2))
            return;
          if (!filter_.empty() && schedule.tactic == "wgmma" &&
              schedule.str().find(filter_) == std::string::npos)
            return;
          Candidate c;
          c.schedule = schedule;
          c.trans_b = trans_b;
          const auto text = family.emit(w, schedule, spec());
          c.source.language = artifact::Language::kCuda;
          c.source.text = family::prelude(c.source.language) + text.text;
          c.source.kernels = text.kernels;
          c.source.key = hash_hex(c.source.text);
          all.push_back(std::move(c));
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
        const auto compiler = backend::cross_compiler(spec().architecture);
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
            if (!keep_.empty()) {
              std::ofstream(keep_ + "/" + c->source.key + ".cu") << c->source.text;
              std::ofstream(keep_ + "/" + c->source.key + ".cubin")
                  .write(reinterpret_cast<const char*>(c->binary.bytes.data()),
                         static_cast<std::streamsize>(c->binary.bytes.size()));
            }
            const std::lock_guard lock(mutex);
            if (!is_card_) fmt::print("{} {} {}\n", c->source.key, c->name(), c->binary.log);
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
    host_a_.resize(static_cast<size_t>(s.m * s.k));
    host_b_.resize(static_cast<size_t>(s.k * s.n));
    uint64_t seed = 1;
    for (auto* v : {&host_a_, &host_b_}) {
      std::vector<std::thread> threads;
      for (size_t part = 0; part < 16; ++part)
        threads.emplace_back([v, part, from = seed++] {
          std::mt19937 random(static_cast<unsigned>(from));
          std::normal_distribution<float> normal;
          for (size_t i = part * v->size() / 16; i < (part + 1) * v->size() / 16; ++i)
            (*v)[i] = normal(random);
        });
      for (std::thread& t : threads) t.join();
    }
    const auto put = [&](const std::vector<float>& v) {
      buffers_.push_back({device_->allocate(v.size() * 4), 0, v.size() * 4});
      stream_->copy_to_device(buffers_.back(), std::as_bytes(std::span<const float>(v)));
    };
    put(host_a_);
    put(host_b_);  // [k][n]
    std::vector<float> turned(host_b_.size());
    for (int64_t k = 0; k < s.k; ++k)
      for (int64_t n = 0; n < s.n; ++n)
        turned[static_cast<size_t>(n * s.k + k)] = host_b_[static_cast<size_t>(k * s.n + n)];
    put(turned);
    const size_t bytes = static_cast<size_t>(s.m * s.n * 4);
    buffers_.push_back({device_->allocate(bytes), 0, bytes});
  }

  void load(const Shape& s, Candidate& c) {
    const ir::Workload w = make_workload(s, c.trans_b);
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
    std::vector<float> got(static_cast<size_t>(s.m * s.n));
    stream_->copy_to_host(std::as_writable_bytes(std::span<float>(got)), buffers_[3]);
    std::mt19937_64 random(7);
    double wrong = 0, norm = 0;
    for (int i = 0; i < 512; ++i) {
      const int64_t m = static_cast<int64_t>(random() % static_cast<uint64_t>(s.m)),
                    n = static_cast<int64_t>(random() % static_cast<uint64_t>(s.n));
      double sum = 0, size = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double p = static_cast<double>(host_a_[static_cast<size_t>(m * s.k + k)]) *
                         host_b_[static_cast<size_t>(k * s.n + n)];
        sum += p;
        size += std::fabs(p);
      }
      const double e = std::fabs(got[static_cast<size_t>(m * s.n + n)] - sum);
      wrong += e * e;
      norm += sum * sum;
      c.bound = std::isnan(e) ? 1 : std::max(c.bound, e / size);
    }
    c.error = std::sqrt(wrong / norm);
    if (!(c.error <= 1e-5) || !(c.bound <= 1e-5))
      throw Error(Code::kWrongResult, fmt::format("error {:.2e}, {:.2e} of |A||B|", c.error, c.bound));
  }

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
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500))
      samples.push_back(sample(c, 0));
    samples.erase(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2));
    return median(samples);
  }

  void report(const Shape& s, const std::vector<Candidate*>& last) {
    const double flop = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    const Candidate *ours = nullptr, *rival = nullptr;
    for (const Candidate* c : last) {
      const Candidate*& best = c->is_library() ? rival : ours;
      if (best == nullptr || c->burst < best->burst) best = c;
    }
    fmt::print("{}\n", s.str());
    for (const Candidate* c : last)
      fmt::print("  {:9.1f} us {:6.1f} TF/s  {:9.1f} us {:6.1f} TF/s sustained  x{:.2f}  {:.1e} {:.1e}  {}\n",
                 c->burst, flop / c->burst * 1e-6, c->sustained, flop / c->sustained * 1e-6,
                 rival != nullptr ? rival->burst / c->burst : 0.0, c->error, c->bound, c->name());
    std::fflush(stdout);
    if (ours == nullptr || rival == nullptr) return;
    cases_ += fmt::format(
        "{}  {{\"run\": \"matrix\", \"suite\": \"matmul_f32\", \"name\": \"{}\", \"family\": \"matmul\", "
        "\"shape\": \"{}\", "
        "\"dtype\": \"f32\", \"numerics\": \"strict\", \"thrice_us\": {:.2f}, \"thrice_burst_us\": {:.2f}, "
        "\"thrice_sustained_us\": {:.2f}, \"rivals\": {{\"cublaslt_f32\": {:.2f}, "
        "\"cublaslt_f32_sustained\": {:.2f}}}, "
        "\"error\": {:.3e}, \"error_limit\": 1e-5, \"note\": \"B packed once before, A at every run\", "
        "\"tactic\": \"{}\", \"schedule\": \"{}\"}}",
        cases_.empty() ? "" : ",\n", s.str(), s.str(), ours->burst, ours->burst, ours->sustained,
        rival->burst, rival->sustained, ours->error, ours->schedule.tactic, ours->name());
  }

  std::string keep_, filter_, cases_;
  bool is_card_ = false;
  backend::DevicePtr device_;
  std::unique_ptr<backend::Stream> stream_;
  std::vector<backend::BufferSpan> buffers_;  // A, B, B transposed, C
  std::vector<float> host_a_, host_b_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cuda:0", only, out, keep, filter, finalists = "4", command = "bench_matrix";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    std::map<std::string, std::string*> flags = {{"--device", &device},   {"--shape", &only},
                                                 {"--out", &out},         {"--keep", &keep},
                                                 {"--schedule", &filter}, {"--finalists", &finalists}};
    if (flags.count(flag) == 0) {
      std::cerr << "no flag '" << flag << "'; the head of bench/matrix.cc names them\n";
      return 2;
    }
    *flags[flag] = argv[i + 1];
    if (flag != "--out") command += " " + flag + " " + argv[i + 1];
  }
  try {
    Bench bench(device, keep, filter);
    bool any = false;
    for (const Shape& s : kShapes) {
      if (!only.empty() && ("," + only + ",").find("," + s.str() + ",") == std::string::npos) continue;
      any = true;
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
    std::cerr << "--finalists '" << finalists << "' is not a number\n";
    return 2;
  }
  return 0;
}
