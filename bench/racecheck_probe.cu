// What compute-sanitizer's racecheck makes of one lane that arrives at an mbarrier for its warp: a ring of
// one stage, filled by bulk copies, read by 128 threads. In `every_thread` each reader arrives at the barrier
// that gives the stage back; in `one_lane` the warp meets (__syncwarp orders the memory of its threads, PTX
// ISA) and lane 0 arrives, as in kernels/cuda/gemm_wgmma.cuh and delta_rule.cuh. Racecheck of 2025.3 finds
// nothing in the first and reports the reads of lanes 1 to 31 in the second
// (bench/results/h200/memcheck.txt).
//   nvcc -std=c++17 -gencode=arch=compute_90a,code=sm_90a -lineinfo -o racecheck_probe
//   bench/racecheck_probe.cu compute-sanitizer --tool racecheck ./racecheck_probe
#include <cstdint>
#include <cstdio>

namespace {

constexpr int kReaders = 128, kFloats = 256, kSteps = 8;

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ void wait(uint32_t barrier, int phase) {
  asm volatile(
      "{\n.reg .pred done;\nagain: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra "
      "again;\n}" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
__device__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(barrier) : "memory");
}

template <bool kOneLane>
__device__ void read_ring(const float* in, float* out) {
  __shared__ __align__(128) float stage[kFloats];
  __shared__ __align__(8) uint64_t barriers[2];
  const uint32_t full = shared_address(&barriers[0]), empty = shared_address(&barriers[1]);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(full));
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(empty), "r"(kOneLane ? kReaders / 32 : kReaders));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  __syncthreads();
  if (threadIdx.x == kReaders) {
    for (int step = 0; step < kSteps; ++step) {
      if (step > 0) wait(empty, (step - 1) & 1);
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(full), "n"(kFloats * 4)
                   : "memory");
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
              shared_address(stage)),
          "l"(in + step * kFloats), "n"(kFloats * 4), "r"(full)
          : "memory");
    }
  } else if (threadIdx.x < kReaders) {
    float sum = 0;
    for (int step = 0; step < kSteps; ++step) {
      wait(full, step & 1);
      sum += stage[threadIdx.x] + stage[threadIdx.x + kReaders];
      if (kOneLane) __syncwarp();
      if (!kOneLane || threadIdx.x % 32 == 0) arrive(empty);
    }
    out[threadIdx.x] = sum;
  }
}
__global__ void every_thread(const float* in, float* out) { read_ring<false>(in, out); }
__global__ void one_lane(const float* in, float* out) { read_ring<true>(in, out); }

}  // namespace

int main() {
  float *in = nullptr, *out = nullptr;
  cudaMalloc(&in, kSteps * kFloats * sizeof(float));
  cudaMalloc(&out, kReaders * sizeof(float));
  cudaMemset(in, 0, kSteps * kFloats * sizeof(float));
  every_thread<<<1, kReaders + 32>>>(in, out);
  std::printf("every_thread: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  one_lane<<<1, kReaders + 32>>>(in, out);
  std::printf("one_lane: %s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
