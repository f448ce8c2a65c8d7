// Linear attention on a card (suite kda): the kernel of kernels/cuda/delta_rule.cuh alone, checked token by
// token in float64 and timed at the cases of the published rival. Built by hand, since CMake knows no nvcc:
//   nvcc -O2 -std=c++17 -I kernels -gencode=arch=compute_90a,code=sm_90a -o bench_delta_rule
//   bench/delta_rule.cu bench_delta_rule check | time | json FILE
// check: lengths around a chunk, gates from exp(-5) to 1, a sequence in two parts. time: one line a case and
// variant. json: the best variant of each case as a results file. Times are medians of 30 launches, each
// reads and writes a gigabyte, so that the cache is cold; the copy rate before and after them stands beside
// them.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#ifndef __CUDA_ARCH__
#define __CUDA_ARCH_FEAT_SM90_ALL 1  // the host compiles the same side of the text
#endif
#include "cuda/prelude.cuh"
// clang-format off
#include "cuda/delta_rule.cuh"
// clang-format on

#define KERNEL(NAME, GROUPS) \
  TH_KERNEL_ALONE(128 * GROUPS + 256) NAME(th_delta_job job) { th_delta_rule<GROUPS, 8>(job); }
KERNEL(columns_128, 2)
KERNEL(columns_64, 1)

namespace {

using u16 = unsigned short;
using u64 = unsigned long long;

void must(cudaError_t error, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
  std::exit(3);
}
#define MUST(x) must((x), __LINE__)

struct Variant {
  const char* name;
  void (*kernel)(th_delta_job);
  int columns, bytes;
};
const Variant kVariants[] = {{"columns_128", columns_128, 128, th_delta_layout<2, 8>::kBytes},
                             {"columns_64", columns_64, 64, th_delta_layout<1, 8>::kBytes}};

// ---- inputs
__device__ u64 mixed(u64 x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ x >> 33;
}
__device__ float normal_at(u64 seed, u64 i) {
  const u64 a = mixed(seed * 0x9e3779b97f4a7c15ull + i * 2 + 1), b = mixed(a + i + 77);
  return sqrtf(-2 * logf(((a >> 40) + 1) * (1.0f / 16777217))) * cospif((b >> 40) * (1.0f / 8388608));
}
__device__ u16 bf16_of(float x) {
  const unsigned u = __float_as_uint(x);
  return static_cast<u16>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
__device__ float of_bf16(u16 x) { return __uint_as_float(static_cast<unsigned>(x) << 16); }
// `common`: share of a direction that all tokens of a head have.
__global__ void fill16(u16* p, size_t n, u64 seed, float scale, float shift, float common, int width) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    p[i] = bf16_of(scale * ((1 - common) * normal_at(seed, i) + common * normal_at(seed + 999, i % width)) +
                   shift);
}
__global__ void fill32(float* p, size_t n, u64 seed, float scale, float shift) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    p[i] = scale * normal_at(seed, i) + shift;
}

// ---- float64, token by token
__global__ void exact_rows(const u16* q, const u16* k, const u16* g, const u16* beta, const float* a_log,
                           const float* dt_bias, double* qn, double* kn, double* decay, double* share,
                           int heads) {
  const size_t row = blockIdx.x;
  const int h = row % heads, c = threadIdx.x;
  __shared__ double by_k[128], by_q[128];
  const double own_k = of_bf16(k[row * 128 + c]), own_q = of_bf16(q[row * 128 + c]);
  by_k[c] = own_k * own_k;
  by_q[c] = own_q * own_q;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (c < s) {
      by_k[c] += by_k[c + s];
      by_q[c] += by_q[c + s];
    }
    __syncthreads();
  }
  kn[row * 128 + c] = own_k / sqrt(by_k[0] + 1e-6);
  qn[row * 128 + c] = own_q / sqrt(by_q[0] + 1e-6);
  const double gate =
      exp(double(a_log[h])) * (double(of_bf16(g[row * 128 + c])) + double(dt_bias[h * 128 + c]));
  decay[row * 128 + c] = exp(-5 / (1 + exp(-gate)));
  if (c == 0) share[row] = 1 / (1 + exp(-double(of_bf16(beta[row]))));
}
__global__ void exact_walk(const double* qn, const double* kn, const double* decay, const double* share,
                           const u16* v, const float* first, float* out, float* last, const int* offsets,
                           int heads) {
  const int n = blockIdx.x / heads, h = blockIdx.x % heads;
  const int column = blockIdx.y * 32 + threadIdx.x / 8, part = threadIdx.x % 8;
  const size_t state = (size_t(n) * heads + h) * 16384 + column;
  double s[16], k[16];
  for (int i = 0; i < 16; ++i) s[i] = first[state + (i * 8 + part) * 128];
  for (int t = offsets[n]; t < offsets[n + 1]; ++t) {
    const size_t row = (size_t(t) * heads + h) * 128;
    double known = 0, sum = 0;
    for (int i = 0; i < 16; ++i) {
      k[i] = kn[row + i * 8 + part];
      s[i] *= decay[row + i * 8 + part];
      known += k[i] * s[i];
    }
    for (int d = 1; d < 8; d *= 2) known += __shfl_xor_sync(~0u, known, d);
    const double update = share[row / 128] * (double(of_bf16(v[row + column])) - known);
    for (int i = 0; i < 16; ++i) {
      s[i] += k[i] * update;
      sum += qn[row + i * 8 + part] * s[i];
    }
    for (int d = 1; d < 8; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (part == 0) out[row + column] = static_cast<float>(sum / sqrt(128.0));
  }
  for (int i = 0; i < 16; ++i) last[state + (i * 8 + part) * 128] = static_cast<float>(s[i]);
}

struct Sums {
  double difference, size;
  u64 bad;  // neither finite nor right
};
__global__ void compare(const u16* y16, const float* y32, const float* r, size_t n, Sums* sums) {
  double difference = 0, size = 0;
  u64 bad = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    const double y = y16 != nullptr ? of_bf16(y16[i]) : y32[i], x = r[i];
    if (!isfinite(y)) ++bad;
    difference += (y - x) * (y - x);
    size += x * x;
  }
  atomicAdd(&sums->difference, difference);
  atomicAdd(&sums->size, size);
  atomicAdd(&sums->bad, bad);
}
__global__ void copy(const uint4* from, uint4* to, size_t n) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    to[i] = from[i];
}

// ---- one problem
template <class T>
T* device(size_t n) {
  void* p = nullptr;
  MUST(cudaMalloc(&p, n * sizeof(T) + 256));
  return static_cast<T*>(p);
}
struct Gates {
  const char* name;
  float dt_scale = 0.3f, dt_shift = 0, beta_shift = 0, common = 0, size = 1;
};
struct Problem {
  int tokens = 0, heads = 0, sequences = 0;
  size_t elements = 0, states = 0;
  u16 *q, *k, *v, *g, *beta, *out;
  float *a_log, *dt_bias, *first, *last, *exact_out, *exact_last;
  int* offsets;
  double *qn, *kn, *decay, *share;

  Problem(const std::vector<int>& lengths, int h, const Gates& gates, u64 seed)
      : heads(h), sequences(static_cast<int>(lengths.size())) {
    std::vector<int> ends{0};
    for (int l : lengths) ends.push_back(ends.back() + l);
    tokens = ends.back();
    elements = size_t(tokens) * heads * 128;
    states = size_t(sequences) * heads * 16384;
    for (u16** p : {&q, &k, &v, &g, &out}) *p = device<u16>(elements);
    beta = device<u16>(elements / 128);
    for (float** p : {&first, &last, &exact_last}) *p = device<float>(states);
    exact_out = device<float>(elements);
    a_log = device<float>(heads);
    dt_bias = device<float>(heads * 128);
    offsets = device<int>(ends.size());
    for (double** p : {&qn, &kn, &decay}) *p = device<double>(elements);
    share = device<double>(elements / 128);
    MUST(cudaMemcpy(offsets, ends.data(), ends.size() * 4, cudaMemcpyHostToDevice));
    const int width = heads * 128;
    fill16<<<1024, 256>>>(q, elements, seed + 1, 1, 0, 0, width);
    fill16<<<1024, 256>>>(k, elements, seed + 2, 1, 0, gates.common, width);
    fill16<<<1024, 256>>>(v, elements, seed + 3, gates.size, 0, 0, width);
    fill16<<<1024, 256>>>(g, elements, seed + 4, 1, 0, 0, width);
    fill16<<<1024, 256>>>(beta, elements / 128, seed + 5, 1, gates.beta_shift, 0, heads);
    fill32<<<64, 256>>>(a_log, heads, seed + 6, 0.3f, 0);
    fill32<<<64, 256>>>(dt_bias, width, seed + 7, gates.dt_scale, gates.dt_shift);
    fill32<<<1024, 256>>>(first, states, seed + 8, gates.size * 0.5f, 0);
    if (tokens > 0)
      exact_rows<<<tokens * heads, 128>>>(q, k, g, beta, a_log, dt_bias, qn, kn, decay, share, heads);
    exact_walk<<<dim3(sequences * heads, 4), 256>>>(qn, kn, decay, share, v, first, exact_out, exact_last,
                                                    offsets, heads);
    forget();
  }
  ~Problem() {
    for (void* p : {(void*)q, (void*)k, (void*)v, (void*)g, (void*)beta, (void*)out, (void*)a_log,
                    (void*)dt_bias, (void*)first, (void*)last, (void*)exact_out, (void*)exact_last,
                    (void*)offsets, (void*)qn, (void*)kn, (void*)decay, (void*)share})
      MUST(cudaFree(p));
  }
  Problem(const Problem&) = delete;
  void forget() {  // what is not written is no number
    MUST(cudaMemset(out, 0xff, elements * 2));
    MUST(cudaMemset(last, 0xff, states * 4));
    MUST(cudaDeviceSynchronize());
  }
  th_delta_job job(const Variant& v_) const {
    th_delta_job j{};
    j.q = q;
    j.k = k;
    j.v = v;
    j.g = g;
    j.beta = beta;
    j.a_log = a_log;
    j.dt_bias = dt_bias;
    j.first = first;
    j.out = out;
    j.last = last;
    j.offsets = offsets;
    j.heads = heads;
    j.sequences = sequences;
    j.items = sequences * heads * (128 / v_.columns);
    j.tokens = tokens;
    j.scale = 1 / std::sqrt(128.0f);
    j.lower_bound = -5;
    j.epsilon = 1e-6f;
    return j;
  }
};
int multiprocessors() {
  int n = 0;
  MUST(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
  return n;
}
void launch(const Variant& v, const th_delta_job& job) {
  v.kernel<<<std::min(multiprocessors(), job.items), 2 * v.columns + 256, v.bytes>>>(job);
  MUST(cudaGetLastError());
}
struct Error {
  double value;
  u64 bad;
};
Error error_of(const u16* y16, const float* y32, const float* r, size_t n) {
  static Sums* sums = device<Sums>(1);
  MUST(cudaMemset(sums, 0, sizeof(Sums)));
  compare<<<512, 256>>>(y16, y32, r, n, sums);
  Sums s{};
  MUST(cudaMemcpy(&s, sums, sizeof s, cudaMemcpyDeviceToHost));
  return {s.size > 0 ? std::sqrt(s.difference / s.size) : std::sqrt(s.difference), s.bad};
}

template <class F>
std::vector<double> times_of(int count, F&& f) {  // us, ascending
  cudaEvent_t from, to;
  MUST(cudaEventCreate(&from));
  MUST(cudaEventCreate(&to));
  std::vector<double> times;
  for (int i = 0; i < count + 5; ++i) {
    MUST(cudaEventRecord(from));
    f();
    MUST(cudaEventRecord(to));
    MUST(cudaEventSynchronize(to));
    float ms = 0;
    MUST(cudaEventElapsedTime(&ms, from, to));
    if (i >= 5) times.push_back(1e3 * ms);
  }
  std::sort(times.begin(), times.end());
  MUST(cudaEventDestroy(from));
  MUST(cudaEventDestroy(to));
  return times;
}
double copy_gbs() {
  const size_t n = size_t(1) << 26;
  static uint4 *from = device<uint4>(n), *to = device<uint4>(n);
  const auto times = times_of(20, [&] { copy<<<multiprocessors() * 16, 512>>>(from, to, n); });
  return 2.0 * n * 16 / times[times.size() / 2] * 1e-3;
}

int check() {
  const std::vector<std::vector<int>> sets = {{1},
                                              {2},
                                              {15},
                                              {16},
                                              {17},
                                              {31},
                                              {33},
                                              {300},
                                              {70, 16, 1, 130},
                                              {0, 5, 0, 17, 0},
                                              {1, 1, 1, 3, 2, 64, 65},
                                              {2000}};
  const std::vector<Gates> gates = {{"normal"},
                                    {"strong", 0.3f, 9},
                                    {"weak", 0.3f, -9},
                                    {"both in a head", 9},
                                    {"weak, keys alike, b near 1", 0.3f, -9, 6, 0.9f},
                                    {"values near 1e-6", 0.3f, -2, 0, 0, 1e-6f},
                                    {"values near 1e6", 0.3f, -2, 0, 0, 1e6f}};
  int failed = 0;
  for (const Variant& v : kVariants) {
    for (const Gates& gate : gates) {
      double out = 0, last = 0;
      u64 bad = 0;
      for (const auto& lengths : sets) {
        Problem p(lengths, 3, gate, 17 * lengths.size() + lengths[0]);
        launch(v, p.job(v));
        const Error o = error_of(p.out, nullptr, p.exact_out, p.elements),
                    s = error_of(nullptr, p.last, p.exact_last, p.states);
        out = std::max(out, o.value);
        last = std::max(last, s.value);
        bad += o.bad + s.bad;
      }
      const bool ok = out <= 5.4e-3 && last <= 4.4e-3 && bad == 0;
      failed += !ok;
      std::printf("%s, %s: output %.2e, state %.2e, not finite %llu: %s\n", v.name, gate.name, out, last, bad,
                  ok ? "right" : "WRONG");
    }
    // In two parts, the state handed over.
    Problem p({200}, 3, gates[2], 5);
    th_delta_job job = p.job(v);
    int* parts = device<int>(4);
    const int ends[4] = {0, 77, 77, 200};
    MUST(cudaMemcpy(parts, ends, sizeof ends, cudaMemcpyHostToDevice));
    float* between = device<float>(p.states);
    job.offsets = parts;
    job.last = between;
    launch(v, job);
    job.offsets = parts + 2;
    job.first = between;
    job.last = p.last;
    launch(v, job);
    const Error o = error_of(p.out, nullptr, p.exact_out, p.elements),
                s = error_of(nullptr, p.last, p.exact_last, p.states);
    const bool ok = o.value <= 5.4e-3 && s.value <= 4.4e-3 && o.bad + s.bad == 0;
    failed += !ok;
    std::printf("%s, in two parts: output %.2e, state %.2e: %s\n", v.name, o.value, s.value,
                ok ? "right" : "WRONG");
    MUST(cudaFree(parts));
    MUST(cudaFree(between));
  }
  return failed == 0 ? 0 : 4;
}

struct Case {
  const char* name;
  int heads;
  std::vector<int> lengths;
  double rival_bf16_state, rival_f32_state, floor;  // us: FlashKDA on the same kind of card, the same day
};

int time_all(const char* json) {
  const std::vector<int> fixed = {8192}, mixed = {1300, 547, 2048, 963, 271, 3063}, uniform(8, 1024);
  const std::vector<Case> cases = {
      {"kda_H96_fixed_8192", 96, fixed, 1422.6, 1401.4, 236.9},
      {"kda_H96_mixed_1300_547_2048_963_271_3063", 96, mixed, 1364.7, 1390.6, 236.9},
      {"kda_H96_uniform_8x1024", 96, uniform, 1170.8, 1192.3, 236.9},
      {"kda_H64_fixed_8192", 64, fixed, 1208.5, 1189.1, 157.9},
      {"kda_H64_mixed_1300_547_2048_963_271_3063", 64, mixed, 990.2, 1006.1, 157.9},
      {"kda_H64_uniform_8x1024", 64, uniform, 791.8, 809.6, 157.9}};
  const double rate = copy_gbs();
  std::string rows;
  double gains = 0;
  for (const Case& c : cases) {
    Problem p(c.lengths, c.heads, {"normal"}, 3);
    const double rival = std::min(c.rival_bf16_state, c.rival_f32_state);
    double best = 1e30;
    std::string row;
    for (const Variant& v : kVariants) {
      p.forget();
      const auto times = times_of(30, [&] { launch(v, p.job(v)); });
      const double us = times[times.size() / 2],
                   spread = (times[times.size() * 3 / 4] - times[times.size() / 4]) / 2;
      const Error o = error_of(p.out, nullptr, p.exact_out, p.elements),
                  s = error_of(nullptr, p.last, p.exact_last, p.states);
      std::printf("%s %s: %.1f us, %.2fx, output %.2e, state %.2e, not finite %llu\n", c.name, v.name, us,
                  rival / us, o.value, s.value, o.bad + s.bad);
      if (us >= best || o.bad + s.bad != 0) continue;
      best = us;
      char text[900];
      std::snprintf(
          text, sizeof text,
          "  {\"run\": \"kda\", \"suite\": \"kda\", \"name\": \"%s\", \"family\": \"delta_rule\", \"shape\": "
          "\"8192 tokens, %d heads of 128, %zu sequences\", \"dtype\": \"bf16\", \"numerics\": \"fp16 "
          "factors, "
          "f32 state\", \"thrice_us\": %.1f, \"thrice_spread_us\": %.2f, \"samples\": %zu, \"rivals\": "
          "{\"flashkda_bf16_state\": %.1f, \"flashkda_f32_state\": %.1f}, \"error\": %.3e, \"error_limit\": "
          "5.4e-3, "
          "\"state_error\": %.3e, \"sol_us\": %.1f, \"sol_bound\": \"memory\", \"tactic\": \"chunks\", "
          "\"schedule\": "
          "\"columns=%d blocks=%d\", \"note\": \"rivals measured on the same day and kind of card, "
          "not in "
          "this process\"}",
          c.name, c.heads, c.lengths.size(), us, spread, times.size(), c.rival_bf16_state, c.rival_f32_state,
          o.value, s.value, c.floor, v.columns, multiprocessors());
      row = text;
    }
    gains += std::log(rival / best);
    rows += (rows.empty() ? "" : ",\n") + row;
  }
  const double rate_after = copy_gbs();
  std::printf("copy %.0f GB/s before, %.0f after; geometric mean %.2fx over the better of the rivals\n", rate,
              rate_after, std::exp(gains / cases.size()));
  if (json == nullptr) return 0;
  cudaDeviceProp properties{};
  MUST(cudaGetDeviceProperties(&properties, 0));
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  std::FILE* file = std::fopen(json, "w");
  if (file == nullptr) return 6;
  std::fprintf(
      file,
      "{\"schema\": 1,\n \"runs\": [{\"id\": \"kda\", \"date\": \"%s\", \"command\": \"bench_delta_rule "
      "json\", \"environment\": {\"device\": \"%s\"}, \"anchor\": {\"copy_gbs\": %.0f}}],\n \"cases\": "
      "[\n%s\n]}\n",
      date, properties.name, std::max(rate, rate_after), rows.c_str());
  std::fclose(file);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Variant& v : kVariants)
    MUST(cudaFuncSetAttribute(v.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, v.bytes));
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "check") return check();
  if (what == "time") return time_all(nullptr);
  if (what == "json" && argc > 2) return time_all(argv[2]);
  std::fprintf(stderr, "usage: bench_delta_rule check | time | json FILE\n");
  return 2;
}
