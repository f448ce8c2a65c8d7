#include "backend/opencl/api.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <thrice/status.h>

#include <filesystem>

#include "backend/backend.h"
#include "base/shared_library.h"

namespace thrice::backend {
namespace {
std::string& driver_cache() {
  static std::string folder;
  return folder;
}
}  // namespace

void set_driver_cache(const std::string& folder) { driver_cache() = folder; }

namespace opencl {
namespace {

// PoCL keeps compiled kernels in a folder shared by every program of the user. Ours is private, so that what
// `thrice cache prune` removes is only ours; a user's own setting stays.
void choose_driver_cache() {
  if (getenv("POCL_CACHE_DIR")) return;
  std::string folder = driver_cache();
  if (folder.empty()) {
    const char* cache = getenv("XDG_CACHE_HOME");
    const char* home = getenv("HOME");
    if (cache && *cache)
      folder = std::string(cache) + "/thrice/pocl";
    else if (home && *home)
      folder = std::string(home) + "/.cache/thrice/pocl";
  }
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (folder.empty() || failed) {
    char temporary[] = "/tmp/thrice-pocl-XXXXXX";  // no home, or a read-only one
    if (!mkdtemp(temporary)) return;
    folder = temporary;
  }
  setenv("POCL_CACHE_DIR", folder.c_str(), 0);
}

bool open(Api& a, std::string& reason) {
  choose_driver_cache();
  SharedLibrary library("libOpenCL.so.1");
  if (!library) {
    reason =
        "libOpenCL.so.1 not found; install the device's OpenCL driver, or ocl-icd-libopencl1 and "
        "pocl-opencl-icd for the CPU";
    return false;
  }
#define THRICE_CL_FIND(name) library.find("cl" #name, a.name)
  const bool all =
      THRICE_CL_FIND(GetPlatformIDs) && THRICE_CL_FIND(GetPlatformInfo) && THRICE_CL_FIND(GetDeviceIDs) &&
      THRICE_CL_FIND(GetDeviceInfo) && THRICE_CL_FIND(CreateContext) && THRICE_CL_FIND(ReleaseContext) &&
      THRICE_CL_FIND(CreateCommandQueue) && THRICE_CL_FIND(RetainCommandQueue) &&
      THRICE_CL_FIND(ReleaseCommandQueue) && THRICE_CL_FIND(CreateBuffer) &&
      THRICE_CL_FIND(CreateSubBuffer) && THRICE_CL_FIND(RetainMemObject) &&
      THRICE_CL_FIND(ReleaseMemObject) && THRICE_CL_FIND(SetMemObjectDestructorCallback) &&
      THRICE_CL_FIND(GetMemObjectInfo) && THRICE_CL_FIND(CreateProgramWithSource) &&
      THRICE_CL_FIND(CreateProgramWithBinary) && THRICE_CL_FIND(BuildProgram) &&
      THRICE_CL_FIND(GetProgramInfo) && THRICE_CL_FIND(GetProgramBuildInfo) &&
      THRICE_CL_FIND(RetainProgram) && THRICE_CL_FIND(ReleaseProgram) && THRICE_CL_FIND(CreateKernel) &&
      THRICE_CL_FIND(GetKernelInfo) && THRICE_CL_FIND(GetKernelWorkGroupInfo) &&
      THRICE_CL_FIND(SetKernelArg) && THRICE_CL_FIND(ReleaseKernel) && THRICE_CL_FIND(EnqueueNDRangeKernel) &&
      THRICE_CL_FIND(EnqueueReadBuffer) && THRICE_CL_FIND(EnqueueWriteBuffer) &&
      THRICE_CL_FIND(EnqueueCopyBuffer) && THRICE_CL_FIND(EnqueueFillBuffer) &&
      THRICE_CL_FIND(EnqueueMarkerWithWaitList) && THRICE_CL_FIND(WaitForEvents) &&
      THRICE_CL_FIND(GetEventProfilingInfo) && THRICE_CL_FIND(ReleaseEvent) && THRICE_CL_FIND(Flush) &&
      THRICE_CL_FIND(Finish);
#undef THRICE_CL_FIND
  if (!all)
    reason = fmt::format("libOpenCL.so.1 has no {}: it is older than OpenCL 1.2; update the loader",
                         library.missing());
  return all;
}

struct Opened {
  Api api{};
  std::string reason;
  bool ok = false;
  Opened() { ok = open(api, reason); }
};

}  // namespace

const Api* find_api(std::string* reason) {
  static const Opened opened;  // never closed: drivers keep threads of their own
  if (!opened.ok && reason) *reason = opened.reason;
  return opened.ok ? &opened.api : nullptr;
}

const Api& api() {
  std::string reason;
  const Api* found = find_api(&reason);
  if (!found) throw Error(Code::kNotFound, "OpenCL: " + reason);
  return *found;
}

std::string error_name(cl_int code) {
  switch (code) {
#define THRICE_CL_NAME(value, name) \
  case value:                       \
    return name;
    THRICE_CL_NAME(0, "CL_SUCCESS")
    THRICE_CL_NAME(-1, "CL_DEVICE_NOT_FOUND")
    THRICE_CL_NAME(-2, "CL_DEVICE_NOT_AVAILABLE")
    THRICE_CL_NAME(-3, "CL_COMPILER_NOT_AVAILABLE")
    THRICE_CL_NAME(-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE")
    THRICE_CL_NAME(-5, "CL_OUT_OF_RESOURCES")
    THRICE_CL_NAME(-6, "CL_OUT_OF_HOST_MEMORY")
    THRICE_CL_NAME(-7, "CL_PROFILING_INFO_NOT_AVAILABLE")
    THRICE_CL_NAME(-8, "CL_MEM_COPY_OVERLAP")
    THRICE_CL_NAME(-11, "CL_BUILD_PROGRAM_FAILURE")
    THRICE_CL_NAME(-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET")
    THRICE_CL_NAME(-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST")
    THRICE_CL_NAME(-30, "CL_INVALID_VALUE")
    THRICE_CL_NAME(-33, "CL_INVALID_DEVICE")
    THRICE_CL_NAME(-34, "CL_INVALID_CONTEXT")
    THRICE_CL_NAME(-36, "CL_INVALID_COMMAND_QUEUE")
    THRICE_CL_NAME(-38, "CL_INVALID_MEM_OBJECT")
    THRICE_CL_NAME(-42, "CL_INVALID_BINARY")
    THRICE_CL_NAME(-43, "CL_INVALID_BUILD_OPTIONS")
    THRICE_CL_NAME(-44, "CL_INVALID_PROGRAM")
    THRICE_CL_NAME(-45, "CL_INVALID_PROGRAM_EXECUTABLE")
    THRICE_CL_NAME(-46, "CL_INVALID_KERNEL_NAME")
    THRICE_CL_NAME(-48, "CL_INVALID_KERNEL")
    THRICE_CL_NAME(-49, "CL_INVALID_ARG_INDEX")
    THRICE_CL_NAME(-50, "CL_INVALID_ARG_VALUE")
    THRICE_CL_NAME(-51, "CL_INVALID_ARG_SIZE")
    THRICE_CL_NAME(-52, "CL_INVALID_KERNEL_ARGS")
    THRICE_CL_NAME(-53, "CL_INVALID_WORK_DIMENSION")
    THRICE_CL_NAME(-54, "CL_INVALID_WORK_GROUP_SIZE")
    THRICE_CL_NAME(-55, "CL_INVALID_WORK_ITEM_SIZE")
    THRICE_CL_NAME(-58, "CL_INVALID_EVENT")
    THRICE_CL_NAME(-59, "CL_INVALID_OPERATION")
    THRICE_CL_NAME(-61, "CL_INVALID_BUFFER_SIZE")
    THRICE_CL_NAME(-63, "CL_INVALID_GLOBAL_WORK_SIZE")
    THRICE_CL_NAME(-1001, "CL_PLATFORM_NOT_FOUND_KHR")
#undef THRICE_CL_NAME
    default:
      return fmt::format("OpenCL error {}", code);
  }
}

void check(cl_int code, const std::string& doing) {
  if (code == kClSuccess) return;
  const bool memory = code == kClMemObjectAllocationFailure || code == kClOutOfHostMemory;
  throw Error(memory ? Code::kOutOfMemory : Code::kLaunchFailed, doing + ": " + error_name(code));
}

}  // namespace opencl
}  // namespace thrice::backend
