// What kernels run on: the limits that we enforce ourselves and the peaks that rooflines use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thrice::target {

enum class Api { kNull, kOpenCL, kCuda };

struct DeviceSpec {
  std::string id;  // "opencl:0", "cuda:0", "null:0"
  Api api = Api::kNull;
  std::string name;          // marketing or driver name
  std::string driver;        // driver version text
  std::string uuid;          // CUDA: "GPU-5e1f...", or "MIG-..." of a slice of a card; "" elsewhere
  std::string architecture;  // "sm_90a"; for OpenCL the device name and driver, as a binary key
  bool is_cpu = false;
  int compute_units = 1;                 // SMs, or cores
  int max_threads_per_block = 1024;      // enforced by us: PoCL accepts 4096, GPUs do not
  int64_t max_shared_bytes = 48 * 1024;  // per block; enforced by us: PoCL accepts 2 MiB. 48 KiB = the least
                                         // that sm_80 and OpenCL GPUs give without opting in
  int64_t optin_shared_bytes = 0;  // per block where a kernel asks for dynamic shared memory (CUDA); 0 = none
  int64_t max_alloc_bytes = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int warp_size = 32;  // CPU: preferred vector width in f32 elements
  int registers_per_block = 65536;
  bool has_f64 = false, has_f16_arithmetic = false, has_int64_atomics = false;
  std::string cublaslt;      // version of the cuBLASLt that launches may call ("13.1.0"); "" = none
  std::string cudnn;         // of the cuDNN ("9.10.2")
  double bandwidth_gbs = 0;  // measured or datasheet; 0 = unknown
  double f32_gflops = 0;     // peak; 0 = unknown
  std::string peaks_source;  // "datasheet", "probe 2026-11-30", "" = unknown
  // Peak of float32-accurate products: where tensor cores do them (three fp16 products on sm_90a, whose
  // tensor cores have 15 times the multiply-adds of its float32 units), more than f32_gflops.
  double product_gflops() const;
  std::string key() const;  // everything of it that can change an answer or a time, for cache keys
};

// "cuda:0", "opencl:1", "cuda:sm_90a" (cross-compile), "cuda:sm_80,sm_90a".
struct Target {
  Api api = Api::kNull;
  int index = -1;                                // -1: no device, only architectures
  std::vector<std::string> architectures;        // for cross-compiling
  static Target parse(const std::string& text);  // throws kInvalidArgument with the forms that are accepted
};

}  // namespace thrice::target
