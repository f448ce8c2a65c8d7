// Our own prototypes of the part of OpenCL 1.2 that thrice calls, opened at run time: no OpenCL header or
// library is needed to build, and a machine without OpenCL is a line in `thrice devices`.
// Source: Khronos OpenCL 1.2 specification (values of the constants, signatures).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace thrice::backend::opencl {

using cl_int = int32_t;
using cl_uint = uint32_t;
using cl_ulong = uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_properties = intptr_t;
using cl_platform_id = struct ClPlatform*;
using cl_device_id = struct ClDevice*;
using cl_context = struct ClContext*;
using cl_command_queue = struct ClQueue*;
using cl_mem = struct ClMem*;
using cl_program = struct ClProgramHandle*;
using cl_kernel = struct ClKernel*;
using cl_event = struct ClEvent*;

enum : cl_int {
  kClSuccess = 0,
  kClDeviceNotFound = -1,
  kClMemObjectAllocationFailure = -4,
  kClOutOfResources = -5,
  kClOutOfHostMemory = -6,
  kClInvalidBinary = -42,
  kClInvalidBufferSize = -61,
  kClPlatformNotFoundKhr = -1001,
};

// Kinds of query. Names follow the specification's, without its prefix.
enum : cl_uint {
  kPlatformVersion = 0x0901,
  kPlatformName = 0x0902,
  kDeviceType = 0x1000,
  kDeviceMaxComputeUnits = 0x1002,
  kDeviceMaxWorkGroupSize = 0x1004,
  kDevicePreferredVectorWidthFloat = 0x100A,
  kDeviceMaxMemAllocSize = 0x1010,
  kDeviceMemBaseAddrAlign = 0x1019,
  kDeviceSingleFpConfig = 0x101B,
  kDeviceGlobalMemCacheSize = 0x101E,
  kDeviceGlobalMemSize = 0x101F,
  kDeviceLocalMemSize = 0x1023,
  kDeviceAvailable = 0x1027,
  kDeviceCompilerAvailable = 0x1028,
  kDeviceName = 0x102B,
  kDeviceVendor = 0x102C,
  kDriverVersion = 0x102D,
  kDeviceVersion = 0x102F,
  kDeviceExtensions = 0x1030,
  kDeviceDoubleFpConfig = 0x1032,
  kMemSize = 0x1102,
  kProgramBinarySizes = 0x1165,
  kProgramBinaries = 0x1166,
  kProgramBuildLog = 0x1183,
  kKernelLocalMemSize = 0x11B2,
  kKernelPrivateMemSize = 0x11B4,
  kKernelNumArgs = 0x1191,
  kProfilingCommandEnd = 0x1283,
  kBufferCreateTypeRegion = 0x1220,
};
constexpr cl_bitfield kDeviceTypeCpu = 1 << 1, kDeviceTypeAll = 0xFFFFFFFF;
constexpr cl_bitfield kMemReadWrite = 1 << 0, kMemUseHostPtr = 1 << 3;
constexpr cl_bitfield kQueueProfiling = 1 << 1;
constexpr cl_bitfield kFpCorrectlyRoundedDivideSqrt = 1 << 7;
constexpr cl_properties kContextPlatform = 0x1084;

struct BufferRegion {
  size_t origin, size;
};

// The functions, by their specification names without `cl`.
struct Api {
  cl_int (*GetPlatformIDs)(cl_uint, cl_platform_id*, cl_uint*);
  cl_int (*GetPlatformInfo)(cl_platform_id, cl_uint, size_t, void*, size_t*);
  cl_int (*GetDeviceIDs)(cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*);
  cl_int (*GetDeviceInfo)(cl_device_id, cl_uint, size_t, void*, size_t*);
  cl_context (*CreateContext)(const cl_properties*, cl_uint, const cl_device_id*,
                              void (*)(const char*, const void*, size_t, void*), void*, cl_int*);
  cl_int (*ReleaseContext)(cl_context);
  cl_command_queue (*CreateCommandQueue)(cl_context, cl_device_id, cl_bitfield, cl_int*);
  cl_int (*RetainCommandQueue)(cl_command_queue);
  cl_int (*ReleaseCommandQueue)(cl_command_queue);
  cl_mem (*CreateBuffer)(cl_context, cl_bitfield, size_t, void*, cl_int*);
  cl_mem (*CreateSubBuffer)(cl_mem, cl_bitfield, cl_uint, const void*, cl_int*);
  cl_int (*RetainMemObject)(cl_mem);
  cl_int (*ReleaseMemObject)(cl_mem);
  cl_int (*SetMemObjectDestructorCallback)(cl_mem, void (*)(cl_mem, void*), void*);
  cl_int (*GetMemObjectInfo)(cl_mem, cl_uint, size_t, void*, size_t*);
  cl_program (*CreateProgramWithSource)(cl_context, cl_uint, const char**, const size_t*, cl_int*);
  cl_program (*CreateProgramWithBinary)(cl_context, cl_uint, const cl_device_id*, const size_t*,
                                        const unsigned char**, cl_int*, cl_int*);
  cl_int (*BuildProgram)(cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*),
                         void*);
  cl_int (*GetProgramInfo)(cl_program, cl_uint, size_t, void*, size_t*);
  cl_int (*GetProgramBuildInfo)(cl_program, cl_device_id, cl_uint, size_t, void*, size_t*);
  cl_int (*RetainProgram)(cl_program);
  cl_int (*ReleaseProgram)(cl_program);
  cl_kernel (*CreateKernel)(cl_program, const char*, cl_int*);
  cl_int (*GetKernelInfo)(cl_kernel, cl_uint, size_t, void*, size_t*);
  cl_int (*GetKernelWorkGroupInfo)(cl_kernel, cl_device_id, cl_uint, size_t, void*, size_t*);
  cl_int (*SetKernelArg)(cl_kernel, cl_uint, size_t, const void*);
  cl_int (*ReleaseKernel)(cl_kernel);
  cl_int (*EnqueueNDRangeKernel)(cl_command_queue, cl_kernel, cl_uint, const size_t*, const size_t*,
                                 const size_t*, cl_uint, const cl_event*, cl_event*);
  cl_int (*EnqueueReadBuffer)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void*, cl_uint,
                              const cl_event*, cl_event*);
  cl_int (*EnqueueWriteBuffer)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void*, cl_uint,
                               const cl_event*, cl_event*);
  cl_int (*EnqueueCopyBuffer)(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint,
                              const cl_event*, cl_event*);
  cl_int (*EnqueueFillBuffer)(cl_command_queue, cl_mem, const void*, size_t, size_t, size_t, cl_uint,
                              const cl_event*, cl_event*);
  cl_int (*EnqueueMarkerWithWaitList)(cl_command_queue, cl_uint, const cl_event*, cl_event*);
  cl_int (*WaitForEvents)(cl_uint, const cl_event*);
  cl_int (*GetEventProfilingInfo)(cl_event, cl_uint, size_t, void*, size_t*);
  cl_int (*ReleaseEvent)(cl_event);
  cl_int (*Flush)(cl_command_queue);
  cl_int (*Finish)(cl_command_queue);
};

// The library, opened once a process (threads: safe). nullptr where it is missing; `reason` then says why and
// what to do.
const Api* find_api(std::string* reason);
// As find_api, but throws kNotFound.
const Api& api();

// "CL_OUT_OF_RESOURCES" for -5.
std::string error_name(cl_int code);
// Throws when code is not success: kOutOfMemory for allocation failures, else kLaunchFailed; the message is
// "<doing>: CL_...".
void check(cl_int code, const std::string& doing);

}  // namespace thrice::backend::opencl
