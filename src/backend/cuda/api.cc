#include "backend/cuda/api.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include "base/shared_library.h"

namespace thrice::backend::cuda {
namespace {

constexpr int kLeastVersion = 12000;  // of driver 525
// Illegal address, timeout, assertion, 714 to 719: other faults of a kernel. After one of them the driver
// answers every call of this process on the card with the same code.
constexpr bool breaks_the_context(CUresult code) {
  return code == 700 || code == 702 || code == 710 || (code >= 714 && code <= 719);
}

bool open(Api& a, std::string& reason) {
  SharedLibrary library("libcuda.so.1");
  if (!library) {
    reason = "libcuda.so.1 not found; install the NVIDIA driver";
    return false;
  }
#define THRICE_CU_FIND(name) library.find("cu" #name, a.name)
  const bool all =
      THRICE_CU_FIND(Init) && THRICE_CU_FIND(DriverGetVersion) && THRICE_CU_FIND(GetErrorName) &&
      THRICE_CU_FIND(GetErrorString) && THRICE_CU_FIND(DeviceGetCount) && THRICE_CU_FIND(DeviceGet) &&
      THRICE_CU_FIND(DeviceGetName) && THRICE_CU_FIND(DeviceGetAttribute) &&
      THRICE_CU_FIND(DeviceGetUuid_v2) && THRICE_CU_FIND(DeviceTotalMem_v2) &&
      THRICE_CU_FIND(DevicePrimaryCtxRetain) && THRICE_CU_FIND(DevicePrimaryCtxRelease_v2) &&
      THRICE_CU_FIND(CtxPushCurrent_v2) && THRICE_CU_FIND(CtxPopCurrent_v2) &&
      THRICE_CU_FIND(MemGetInfo_v2) && THRICE_CU_FIND(MemAlloc_v2) && THRICE_CU_FIND(MemFree_v2) &&
      THRICE_CU_FIND(MemcpyHtoDAsync_v2) && THRICE_CU_FIND(MemcpyDtoHAsync_v2) &&
      THRICE_CU_FIND(MemcpyDtoDAsync_v2) && THRICE_CU_FIND(MemsetD8Async) &&
      THRICE_CU_FIND(PointerGetAttributes) && THRICE_CU_FIND(ModuleLoadData) &&
      THRICE_CU_FIND(ModuleUnload) && THRICE_CU_FIND(ModuleGetFunction) && THRICE_CU_FIND(FuncGetAttribute) &&
      THRICE_CU_FIND(FuncSetAttribute) && THRICE_CU_FIND(LaunchKernel) && THRICE_CU_FIND(StreamCreate) &&
      THRICE_CU_FIND(StreamDestroy_v2) && THRICE_CU_FIND(StreamSynchronize) &&
      THRICE_CU_FIND(StreamBeginCapture_v2) && THRICE_CU_FIND(StreamEndCapture) &&
      THRICE_CU_FIND(EventCreate) && THRICE_CU_FIND(EventDestroy_v2) && THRICE_CU_FIND(EventRecord) &&
      THRICE_CU_FIND(EventSynchronize) && THRICE_CU_FIND(EventElapsedTime) && THRICE_CU_FIND(GraphCreate) &&
      THRICE_CU_FIND(GraphDestroy) && THRICE_CU_FIND(GraphAddKernelNode) &&
      THRICE_CU_FIND(GraphAddChildGraphNode) && THRICE_CU_FIND(GraphExecChildGraphNodeSetParams) &&
      THRICE_CU_FIND(GraphInstantiateWithFlags) && THRICE_CU_FIND(GraphExecDestroy) &&
      THRICE_CU_FIND(GraphExecKernelNodeSetParams) && THRICE_CU_FIND(GraphLaunch);
  const std::string lacking = library.missing();
  a.has_virtual_memory = THRICE_CU_FIND(CtxSynchronize) && THRICE_CU_FIND(MemGetAllocationGranularity) &&
                         THRICE_CU_FIND(MemAddressReserve) && THRICE_CU_FIND(MemAddressFree) &&
                         THRICE_CU_FIND(MemCreate) && THRICE_CU_FIND(MemRelease) && THRICE_CU_FIND(MemMap) &&
                         THRICE_CU_FIND(MemUnmap) && THRICE_CU_FIND(MemSetAccess);
  a.has_tensor_maps = THRICE_CU_FIND(TensorMapEncodeTiled);
#undef THRICE_CU_FIND
  if (!all) {
    reason = fmt::format("libcuda.so.1 has no {}: the NVIDIA driver is older than 525; update it", lacking);
    return false;
  }
  int version = 0;
  if (a.DriverGetVersion(&version) == kCuSuccess && version < kLeastVersion) {
    reason = fmt::format("the NVIDIA driver serves CUDA {}.{} only; update it to 525 (CUDA 12.0) or newer",
                         version / 1000, version % 1000 / 10);
    return false;
  }
  const CUresult code = a.Init(0);
  if (code != kCuSuccess) reason = "the NVIDIA driver does not start: " + a.error(code);
  return code == kCuSuccess;
}

struct Opened {
  Api api{};
  std::string reason;
  bool ok = false;
  Opened() { ok = open(api, reason); }
};

}  // namespace

const Api* find_api(std::string* reason) {
  static const Opened opened;
  if (!opened.ok && reason) *reason = opened.reason;
  return opened.ok ? &opened.api : nullptr;
}

std::string Api::error(CUresult code) const {
  const char *name = nullptr, *words = nullptr;
  if (GetErrorName(code, &name) != kCuSuccess || !name) return fmt::format("CUDA error {}", code);
  if (GetErrorString(code, &words) != kCuSuccess || !words) words = "no description";
  const char* advice =
      breaks_the_context(code)
          ? ": a kernel that ran in this process broke its use of the card; every session on it "
            "has failed, start the process anew"
          : "";
  return fmt::format("{} ({}){}", name, words, advice);
}

void Api::check(CUresult code, const std::string& doing) const {
  if (code == kCuSuccess) return;
  throw Error(code == kCuOutOfMemory ? Code::kOutOfMemory : Code::kLaunchFailed, doing + ": " + error(code));
}

}  // namespace thrice::backend::cuda
