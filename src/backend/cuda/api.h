// Our own prototypes of the part of the CUDA driver API that thrice calls, opened at run time: no toolkit is
// needed to build, and a machine without a driver is a line in `thrice devices`. Every symbol is of driver
// 525. Source: CUDA driver API reference (values of the constants, signatures, the first version of the node
// struct).
#pragma once
#include <cstddef>
#include <string>

namespace thrice::backend::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CuContext*;
using CUmodule = struct CuModule*;
using CUfunction = struct CuFunction*;
using CUstream = struct CuStreamHandle*;
using CUevent = struct CuEventHandle*;
using CUgraph = struct CuGraph*;
using CUgraphNode = struct CuGraphNode*;
using CUgraphExec = struct CuGraphExec*;

enum : CUresult {
  kCuSuccess = 0,
  kCuOutOfMemory = 2,
  kCuInvalidImage = 200,
  kCuNoBinaryForGpu = 209,
  kCuInvalidPtx = 218,
  kCuUnsupportedPtxVersion = 222,
};
enum : int {  // CUdevice_attribute
  kMaxThreadsPerBlock = 1,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kClockKhz = 13,  // the highest, of the multiprocessors
  kMultiprocessorCount = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedPerBlockOptin = 97,
};
enum : int {  // CUfunction_attribute
  kFuncSharedBytes = 1,
  kFuncLocalBytes = 3,
  kFuncRegisters = 4,
  kFuncMaxDynamicSharedBytes = 8,
};
constexpr int kPointerMemoryType = 2;
constexpr unsigned kMemoryTypeHost = 1;
constexpr unsigned kStreamNonBlocking = 1;
constexpr int kCaptureRelaxed =
    2;  // CUstreamCaptureMode: the captured library may load its kernels meanwhile

struct KernelNodeParams {
  CUfunction func;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** params;
  void** extra;
};

// Physical memory and where it may be seen: the driver's structs of its virtual memory calls.
struct MemLocation {
  int type, id;  // 1 = a card
};
struct MemAllocationProp {
  int type, handle_types;  // 1 = pinned; 0 = not to be exported
  MemLocation location;
  void* windows_metadata;
  unsigned char compression, rdma;
  unsigned short usage;
  unsigned char reserved[4];
};
struct MemAccess {
  MemLocation location;
  int flags;  // 3 = read and write
};

struct Api {
  CUresult (*Init)(unsigned);
  CUresult (*DriverGetVersion)(int*);
  CUresult (*GetErrorName)(CUresult, const char**);
  CUresult (*GetErrorString)(CUresult, const char**);
  CUresult (*DeviceGetCount)(int*);
  CUresult (*DeviceGet)(CUdevice*, int);
  CUresult (*DeviceGetName)(char*, int, CUdevice);
  CUresult (*DeviceGetAttribute)(int*, int, CUdevice);
  CUresult (*DeviceGetUuid_v2)(unsigned char*, CUdevice);  // 16 bytes; of the slice where the device is one
  CUresult (*DeviceTotalMem_v2)(size_t*, CUdevice);
  CUresult (*DevicePrimaryCtxRetain)(CUcontext*, CUdevice);
  CUresult (*DevicePrimaryCtxRelease_v2)(CUdevice);
  CUresult (*CtxPushCurrent_v2)(CUcontext);
  CUresult (*CtxPopCurrent_v2)(CUcontext*);
  CUresult (*MemGetInfo_v2)(size_t*, size_t*);
  CUresult (*MemAlloc_v2)(CUdeviceptr*, size_t);
  CUresult (*MemFree_v2)(CUdeviceptr);
  CUresult (*MemcpyHtoDAsync_v2)(CUdeviceptr, const void*, size_t, CUstream);
  CUresult (*MemcpyDtoHAsync_v2)(void*, CUdeviceptr, size_t, CUstream);
  CUresult (*MemcpyDtoDAsync_v2)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
  CUresult (*MemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);
  CUresult (*PointerGetAttributes)(unsigned, int*, void**, CUdeviceptr);
  CUresult (*ModuleLoadData)(CUmodule*, const void*);
  CUresult (*ModuleUnload)(CUmodule);
  CUresult (*ModuleGetFunction)(CUfunction*, CUmodule, const char*);
  CUresult (*FuncGetAttribute)(int*, int, CUfunction);
  CUresult (*FuncSetAttribute)(CUfunction, int, int);
  CUresult (*LaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           CUstream, void**, void**);
  CUresult (*StreamCreate)(CUstream*, unsigned);
  CUresult (*StreamDestroy_v2)(CUstream);
  CUresult (*StreamSynchronize)(CUstream);
  CUresult (*StreamBeginCapture_v2)(CUstream, int);
  CUresult (*StreamEndCapture)(CUstream, CUgraph*);
  CUresult (*EventCreate)(CUevent*, unsigned);
  CUresult (*EventDestroy_v2)(CUevent);
  CUresult (*EventRecord)(CUevent, CUstream);
  CUresult (*EventSynchronize)(CUevent);
  CUresult (*EventElapsedTime)(float*, CUevent, CUevent);
  CUresult (*GraphCreate)(CUgraph*, unsigned);
  CUresult (*GraphDestroy)(CUgraph);
  CUresult (*GraphAddKernelNode)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const KernelNodeParams*);
  CUresult (*GraphAddChildGraphNode)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph);
  CUresult (*GraphInstantiateWithFlags)(CUgraphExec*, CUgraph, unsigned long long);
  CUresult (*GraphExecDestroy)(CUgraphExec);
  CUresult (*GraphExecKernelNodeSetParams)(CUgraphExec, CUgraphNode, const KernelNodeParams*);
  CUresult (*GraphExecChildGraphNodeSetParams)(CUgraphExec, CUgraphNode, CUgraph);
  CUresult (*GraphLaunch)(CUgraphExec, CUstream);

  // Optional: nullptr where the driver lacks them.
  CUresult (*CtxSynchronize)();
  CUresult (*MemGetAllocationGranularity)(size_t*, const MemAllocationProp*, int);
  CUresult (*MemAddressReserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long);
  CUresult (*MemAddressFree)(CUdeviceptr, size_t);
  CUresult (*MemCreate)(unsigned long long*, size_t, const MemAllocationProp*, unsigned long long);
  CUresult (*MemRelease)(unsigned long long);
  CUresult (*MemMap)(CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long);
  CUresult (*MemUnmap)(CUdeviceptr, size_t);
  CUresult (*MemSetAccess)(CUdeviceptr, size_t, const MemAccess*, size_t);
  bool has_virtual_memory = false;  // all of them
  // The map (128 bytes, aligned to 64), type, axes, address, extents, strides, box, steps, interleave,
  // swizzle, promotion in the second cache, what lies outside.
  CUresult (*TensorMapEncodeTiled)(void*, int, unsigned, void*, const unsigned long long*,
                                   const unsigned long long*, const unsigned*, const unsigned*, int, int, int,
                                   int);
  bool has_tensor_maps = false;

  // Throws when code is not success: kOutOfMemory, else kLaunchFailed; "<doing>: CUDA_ERROR_... (words)".
  void check(CUresult code, const std::string& doing) const;
  std::string error(CUresult code) const;
};

// The driver, opened and initialised once a process (threads: safe). nullptr where it is missing; `reason`
// says why and what to do.
const Api* find_api(std::string* reason);

}  // namespace thrice::backend::cuda
