// Products on a CUDA card: schedules of our tactics are screened, then the best ones, the rule-chosen ones
// and the best of cuBLASLt's answers, in both layouts of B, are timed in turns.
//   bench_matrix [--device cuda:0] [--dtype f32] [--suite matmul|skinny|irregular|small] [--shape MxNxK,...]
//                [--schedule TACTIC/TEXT,...] [--limit 32] [--finalists 4] [--seconds N] [--out FILE]
//                [--keep FOLDER]
// Irregular shapes (ZxMxNxK: a batch of Z) are taken with 16 bits, or where the suite is named. No shape is
// begun after --seconds.
// --limit: schedules a tactic and layout (bench/matrix_corner.h says which). --keep FOLDER writes text and
// cubin of each schedule (for cuobjdump -res-usage) and, without a card (--device cuda:sm_90a), only that is
// done. Burst: after 20 ms of rest and 3 warm launches. Sustained, of the best of either side: half a second
// back to back. Launches under 0.5 ms in batches; warm L2. Error: 512 elements against float64 sums on the
// host: norm, and the largest |error| / (|A| |B|). The copy rate is that of the driver's copy of 1 GiB, bytes
// read and written.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
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
#include "bench/matrix_corner.h"
#include "bench/matrix_report.h"
#include "family/matmul/matmul.h"
#include "family/prelude.h"
#include "ir/check.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file
using artifact::Schedule;

using Shape = bench::MatrixShape;

struct Candidate : bench::Measured {
  Schedule schedule;
  artifact::KernelSource source;
  artifact::KernelBinary binary;
  std::vector<backend::RecordedLaunch> launches;
  double screened = 1e30;
  std::vector<double> samples;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

class Bench {
 public:
  Bench(const std::string& device, DType dtype, std::string keep, std::string filter, size_t limit)
      : dtype_(dtype), limit_(limit), keep_(std::move(keep)), filter_(std::move(filter)) {
    is_card_ = device.find("sm_") == std::string::npos;
    device_ = is_card_ ? backend::open_device(device) : backend::open_cross_device(device.substr(5));
    stream_ = device_->make_stream();
    if (is_card_) measure_copy();
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
        fmt::print("  {}: {}\n", c.name, error.what());
      }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.screened < b.screened; });
    std::vector<Candidate*> last;
    for (const bool library : {true, false}) {
      size_t taken = 0;
      for (Candidate& c : all)
        if (c.is_library == library && c.screened < 1e29 &&
            (c.is_default || taken < (library ? 2 : finalists))) {
          last.push_back(&c);
          ++taken;
        }
    }
    for (int round = 0; round < 7; ++round)
      for (Candidate* c : last) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        c->samples.push_back(sample(*c, 3));
      }
    for (Candidate* c : last) c->burst = median(c->samples);
    for (const bool library : {true, false}) {
      Candidate* best = nullptr;
      for (Candidate* c : last)
        if (c->is_library == library && (best == nullptr || c->burst < best->burst)) best = c;
      if (best != nullptr) best->sustained = sustained(*best);
    }
    report_.add(s, dtype_, limit(), {last.begin(), last.end()});
  }

  const target::DeviceSpec& spec() const { return device_->spec(); }
  std::string json(const std::string& command) const { return report_.json(command, spec()); }

 private:
  std::vector<Candidate> candidates(const Shape& s) {
    std::vector<Candidate> all;
    for (const bool trans_b : {false, true}) {
      const ir::Workload w = bench::matrix_workload(s, trans_b, dtype_);
      const auto facts = ir::facts_at(w.graph, {});
      const auto& family = family::matmul_family();
      const auto add = [&](const Schedule& schedule) -> Candidate& {
        for (Candidate& c : all)
          if (c.trans_b == trans_b && c.schedule == schedule) return c;
        Candidate c;
        c.schedule = schedule;
        c.trans_b = trans_b;
        c.tactic = schedule.tactic;
        c.is_library = c.tactic == "cublaslt";
        c.name = fmt::format("{} {}", trans_b ? "nt" : "nn", schedule.str());
        const auto text = family.emit(w, schedule, spec());
        c.source.language = artifact::Language::kCuda;
        c.source.text = family::prelude(c.source.language) + text.text;
        c.source.kernels = text.kernels;
        c.source.key = hash_hex(c.source.text);
        all.push_back(std::move(c));
        return all.back();
      };
      add(family.default_schedule(w, facts, spec())).is_default = true;
      for (const auto& tactic : family.space(w, facts, spec()).tactics) {
        const bool is_mma = tactic.tactic == "mma", is_library = tactic.tactic == "cublaslt";
        if (tactic.tactic == "naive" || tactic.tactic == "tiled") continue;
        std::vector<Schedule> schedules;
        Schedule schedule{tactic.family, tactic.tactic, {}};
        bench::each_choice(tactic.parameters, 0, schedule, [&] {
          if ((is_mma && !bench::in_mma_corner(s, schedule)) ||
              (tactic.tactic == "wgmma16" && !bench::in_wgmma16_corner(schedule)) ||
              (tactic.tactic == "skinny" && !bench::in_skinny_corner(s, schedule)) ||
              !bench::passes(filter_, schedule) || family.illegal(w, schedule, spec()))
            return;
          schedules.push_back(schedule);
        });
        for (const Schedule& one : is_library ? schedules : bench::spread(schedules, limit_)) add(one);
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
            while (next < all.size() && all[next].is_library) ++next;
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
            if (!is_card_) fmt::print("{} {} {}\n", c->source.key, c->name, c->binary.log);
          } catch (const Error& error) {
            const std::lock_guard lock(mutex);
            fmt::print("{}: {}\n", c->name, error.what());
          }
        }
      });
    for (std::thread& t : threads) t.join();
  }

  void fill(const Shape& s) {
    buffers_.clear();
    host_a_.resize(static_cast<size_t>(s.batches * s.m * s.k));
    host_b_.resize(static_cast<size_t>(s.batches * s.k * s.n));
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
    const auto put = [&](std::vector<float>& v) {
      if (dtype_ == DType::kF32) {
        buffers_.push_back({device_->allocate(v.size() * 4), 0, v.size() * 4});
        return stream_->copy_to_device(buffers_.back(), std::as_bytes(std::span<const float>(v)));
      }
      std::vector<uint16_t> stored(v.size());
      for (size_t i = 0; i < v.size(); ++i) {
        v[i] = static_cast<float>(round_to(dtype_, v[i]));
        stored[i] = dtype_ == DType::kF16 ? f16_from_double(v[i]) : bf16_from_double(v[i]);
      }
      buffers_.push_back({device_->allocate(v.size() * 2), 0, v.size() * 2});
      stream_->copy_to_device(buffers_.back(), std::as_bytes(std::span<const uint16_t>(stored)));
    };
    put(host_a_);
    put(host_b_);  // [k][n]
    std::vector<float> turned(host_b_.size());
    constexpr int64_t kTile = 32;  // of a copy that turns rows into columns
    for (int64_t z = 0; z < s.batches; ++z)
      for (int64_t k0 = 0; k0 < s.k; k0 += kTile)
        for (int64_t n0 = 0; n0 < s.n; n0 += kTile)
          for (int64_t n = n0; n < std::min(n0 + kTile, s.n); ++n)
            for (int64_t k = k0; k < std::min(k0 + kTile, s.k); ++k)
              turned[static_cast<size_t>((z * s.n + n) * s.k + k)] =
                  host_b_[static_cast<size_t>((z * s.k + k) * s.n + n)];
    put(turned);
    expect(s, turned);
    const size_t bytes = static_cast<size_t>(s.batches * s.m * s.n) * dtype_bytes(dtype_);
    buffers_.push_back({device_->allocate(bytes), 0, bytes});
  }

  void load(const Shape& s, Candidate& c) {
    const ir::Workload w = bench::matrix_workload(s, c.trans_b, dtype_);
    const auto plan = family::matmul_family().launch(w, c.schedule, ir::facts_at(w.graph, {}));
    if (c.is_library) c.binary = device_->compiler()->compile(c.source);
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

  // Some elements of the product in float64; `turned` holds the columns of B.
  void expect(const Shape& s, const std::vector<float>& turned) {
    std::mt19937_64 random(7);
    expected_.clear();
    for (int i = 0; i < 512; ++i) {
      const int64_t m = static_cast<int64_t>(random() % static_cast<uint64_t>(s.m)),
                    n = static_cast<int64_t>(random() % static_cast<uint64_t>(s.n)), z = i % s.batches;
      Expected e{static_cast<size_t>((z * s.m + m) * s.n + n), 0, 0};
      for (int64_t k = 0; k < s.k; ++k) {
        const double p = static_cast<double>(host_a_[static_cast<size_t>((z * s.m + m) * s.k + k)]) *
                         turned[static_cast<size_t>((z * s.n + n) * s.k + k)];
        e.sum += p;
        e.size += std::fabs(p);
      }
      expected_.push_back(e);
    }
  }

  void check(const Shape& s, Candidate& c) {
    stream_->fill(buffers_[3], std::byte{0xff});
    for (const auto& launch : c.launches) stream_->launch(launch);
    const size_t count = static_cast<size_t>(s.batches * s.m * s.n), bytes = dtype_bytes(dtype_);
    std::vector<std::byte> got(count * bytes);
    stream_->copy_to_host(got, buffers_[3]);
    const auto element = [&](size_t at) -> double {
      float wide = 0;
      if (bytes == 4) return std::memcpy(&wide, &got[at * 4], 4), wide;
      uint16_t narrow = 0;
      std::memcpy(&narrow, &got[at * 2], 2);
      return dtype_ == DType::kF16 ? f16_to_double(narrow) : bf16_to_double(narrow);
    };
    double wrong = 0, norm = 0;
    for (const Expected& x : expected_) {
      const double e = std::fabs(element(x.at) - x.sum);
      wrong += e * e;
      norm += x.sum * x.sum;
      c.bound = std::isnan(e) ? 1 : std::max(c.bound, e / x.size);
    }
    c.error = std::sqrt(wrong / norm);
    if (!(c.error <= limit()) || !(c.bound <= limit()))
      throw Error(Code::kWrongResult, fmt::format("error {:.2e}, {:.2e} of |A||B|", c.error, c.bound));
  }

  // Of a product alone, from docs/numerics.md: an ordinary error that is not known.
  double limit() const {
    return dtype_ == DType::kF32 ? 1e-5 : dtype_ == DType::kF16 ? 4.0 / 2048 : 4.0 / 256;
  }

  void measure_copy() {
    constexpr size_t kBytes = size_t{1} << 30;
    const backend::BufferSpan from{device_->allocate(kBytes), 0, kBytes},
        to{device_->allocate(kBytes), 0, kBytes};
    stream_->fill(from, std::byte{1});
    std::vector<double> samples;
    for (int i = 0; i < 9; ++i) {
      const auto begin = stream_->record_event();
      stream_->copy(to, from);
      const auto end = stream_->record_event();
      samples.push_back(end->microseconds_since(*begin));
    }
    report_.copy_gbs = 2.0 * kBytes / median(samples) * 1e-3;
    fmt::print("copy: {:.0f} GB/s\n", report_.copy_gbs);
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

  struct Expected {
    size_t at;
    double sum, size;
  };
  DType dtype_ = DType::kF32;
  size_t limit_ = 0;
  bench::MatrixReport report_;
  std::vector<Expected> expected_;
  std::string keep_, filter_;
  bool is_card_ = false;
  backend::DevicePtr device_;
  std::unique_ptr<backend::Stream> stream_;
  std::vector<backend::BufferSpan> buffers_;  // A, B, B transposed, C
  std::vector<float> host_a_, host_b_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cuda:0", only, out, keep, filter, suite, dtype = "f32", limit = "32", finalists = "4",
              seconds = "1e9", command = "bench_matrix";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    std::map<std::string, std::string*> flags = {
        {"--device", &device},       {"--shape", &only},     {"--suite", &suite}, {"--dtype", &dtype},
        {"--limit", &limit},         {"--out", &out},        {"--keep", &keep},   {"--schedule", &filter},
        {"--finalists", &finalists}, {"--seconds", &seconds}};
    if (flags.count(flag) == 0) {
      std::cerr << "no flag '" << flag << "'; the head of bench/matrix.cc names them\n";
      return 2;
    }
    *flags[flag] = argv[i + 1];
    if (flag != "--out") command += " " + flag + " " + argv[i + 1];
  }
  try {
    Bench bench(device, parse_dtype(dtype), keep, filter, static_cast<size_t>(std::stoi(limit)));
    const auto start = std::chrono::steady_clock::now();
    const double most = std::stod(seconds);
    bool any = false;
    for (const Shape& s : bench::kMatrixShapes) {
      if (!suite.empty() && s.suites.find(suite) == std::string::npos) continue;
      if (suite.empty() && only.empty() &&
          ((dtype == "f32" && s.suites == "irregular") || s.suites == "small"))
        continue;
      if (!only.empty() && ("," + only + ",").find("," + s.str() + ",") == std::string::npos) continue;
      any = true;
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > most) {
        fmt::print("{}: not begun, the time is over\n", s.str());
        continue;
      }
      bench.run(s, static_cast<size_t>(std::stoi(finalists)));
      if (!out.empty())
        std::ofstream(out) << bench.json(command);  // after every shape: nothing is lost when it is stopped
    }
    if (!any) {
      std::cerr << "--shape '" << only << "' names none of:";
      for (const Shape& s : bench::kMatrixShapes) std::cerr << " " << s.str();
      std::cerr << "\n";
      return 2;
    }
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  } catch (const std::invalid_argument&) {
    std::cerr << "--finalists '" << finalists << "', --limit '" << limit << "' or --seconds '" << seconds
              << "' is not a number\n";
    return 2;
  }
  return 0;
}
