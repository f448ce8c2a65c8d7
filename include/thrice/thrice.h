/* thrice in C: load a release, ask what it takes, run it, exchange it while it runs. Nothing here optimises:
 * the executable `thrice` makes releases.
 *
 * Errors:   each call that can fail returns a status, 0 for success. thrice_message() then says what was
 * wrong and what to do; on an error the out parameters are unchanged. Threads:  every function is safe from
 * any thread, also on one session: runs at one time work beside each other. A handle is freed once, after the
 * last call that uses it has returned. Trust:    a release is code. Load only what you trust: digests catch
 * damage, not intent. Versions: thrice_abi_version() == THRICE_ABI_VERSION, or the library does not fit this
 * header. A struct with `struct_size` may grow at its end; set it to sizeof. Numbers of an enumeration never
 * change. */
#ifndef THRICE_THRICE_H
#define THRICE_THRICE_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(THRICE_BUILD)
#define THRICE_EXPORT __attribute__((visibility("default")))
#else
#define THRICE_EXPORT
#endif

#define THRICE_ABI_VERSION 1

typedef int32_t thrice_status;
enum {
  THRICE_OK = 0,
  THRICE_INVALID_ARGUMENT = 1, /* a name, shape, dtype or pointer of the caller's */
  THRICE_INVALID_MODEL = 2,
  THRICE_UNSUPPORTED = 3, /* no kernels for this device in the release; a newer file format */
  THRICE_NOT_FOUND = 4,   /* a file or device that is not there */
  THRICE_IO = 5,
  THRICE_CORRUPT = 6, /* the release is damaged */
  THRICE_OUT_OF_MEMORY = 7,
  THRICE_COMPILE_FAILED = 8,
  THRICE_LAUNCH_FAILED = 9, /* the device refused or lost a launch */
  THRICE_TIMED_OUT = 10,
  THRICE_WRONG_RESULT = 11,
  THRICE_CANCELLED = 12,
  THRICE_INTERNAL = 13 /* ours; please report it */
};

typedef int32_t thrice_dtype;
enum {
  THRICE_F32 = 0,
  THRICE_F64 = 1,
  THRICE_F16 = 2,
  THRICE_BF16 = 3,
  THRICE_I8 = 4,
  THRICE_I16 = 5,
  THRICE_I32 = 6,
  THRICE_I64 = 7,
  THRICE_U8 = 8,
  THRICE_U16 = 9,
  THRICE_U32 = 10,
  THRICE_U64 = 11,
  THRICE_BOOL = 12 /* one byte, 0 or 1 */
};

typedef int32_t thrice_memory;
enum {
  THRICE_HOST = 0,
  THRICE_DEVICE = 1 /* of the session's device. CUDA: a device address; OpenCL: a cl_mem of its context */
};

/* A dense tensor, row-major. On input the caller owns `data` and `shape`. */
typedef struct thrice_tensor {
  void* data;
  const int64_t* shape; /* `rank` extents; may be NULL at rank 0 */
  int32_t rank;
  thrice_dtype dtype;
  thrice_memory memory;
  int32_t reserved; /* 0 */
} thrice_tensor;

/* What a model takes or gives. Valid until the session is freed. */
typedef struct thrice_tensor_info {
  const char* name;
  const int64_t* shape;           /* -1 where the extent is symbolic */
  const char* const* expressions; /* per axis: "width", "floordiv(width,4)"; a number where fixed */
  int32_t rank;
  thrice_dtype dtype;
} thrice_tensor_info;

typedef struct thrice_session thrice_session; /* a loaded release on one device */
typedef struct thrice_result thrice_result;   /* the outputs of one run */

typedef struct thrice_load_options {
  size_t struct_size; /* sizeof(thrice_load_options) */
  const char* device; /* "cuda:0", "opencl:0", ...; NULL or "": the best found */
  int32_t no_build;   /* not 0: refuse a release without binaries for the device; 0: let the device's own
                         compiler   (OpenCL driver, NVRTC where installed) build the kernel text in it */
} thrice_load_options;

THRICE_EXPORT uint32_t thrice_abi_version(void);
THRICE_EXPORT const char* thrice_version(void); /* of the product: "0.1.0" */
/* Of the calling thread's last call that failed; "" when none did. Valid until its next call. */
THRICE_EXPORT const char* thrice_message(void);
THRICE_EXPORT const char* thrice_status_name(thrice_status status); /* "InvalidArgument" */
THRICE_EXPORT const char* thrice_dtype_name(thrice_dtype dtype);    /* "f32"; "?" when there is none */
THRICE_EXPORT size_t thrice_dtype_bytes(thrice_dtype dtype);        /* of one element; 0 when there is none */

/* Every back end with its devices and limits, as JSON. Free it with thrice_free. */
THRICE_EXPORT thrice_status thrice_devices_json(char** json);
THRICE_EXPORT void thrice_free(char* text);

/* Reads a release, checks its digests, loads kernels and weights. `options` may be NULL.
 * Errors: NOT_FOUND, IO, CORRUPT, UNSUPPORTED, OUT_OF_MEMORY, COMPILE_FAILED. */
THRICE_EXPORT thrice_status thrice_load(const char* path, const thrice_load_options* options,
                                        thrice_session** session);
/* NULL is legal. Waits for what was enqueued; results live on. Streams of thrice_run_async must still exist.
 */
THRICE_EXPORT void thrice_session_free(thrice_session* session);

THRICE_EXPORT size_t thrice_num_inputs(const thrice_session* session);
THRICE_EXPORT size_t thrice_num_outputs(const thrice_session* session);
/* Errors: INVALID_ARGUMENT (no such index). A swap changes none of this. */
THRICE_EXPORT thrice_status thrice_input_info(const thrice_session* session, size_t index,
                                              thrice_tensor_info* info);
THRICE_EXPORT thrice_status thrice_output_info(const thrice_session* session, size_t index,
                                               thrice_tensor_info* info);
THRICE_EXPORT const char* thrice_device_id(const thrice_session* session);   /* "cuda:0" */
THRICE_EXPORT const char* thrice_device_name(const thrice_session* session); /* as the driver names it */
/* What the release in service says of itself (docs/release_format.md), as JSON. Free it with thrice_free. */
THRICE_EXPORT thrice_status thrice_manifest_json(const thrice_session* session, char** json);

/* Runs once and waits. Inputs in the order of thrice_input_info, on the host or on the device (written before
 * the call). Results lie on the host.
 * Errors: INVALID_ARGUMENT (names the input, what it is and what it must be), OUT_OF_MEMORY, LAUNCH_FAILED.
 * The session stays usable after any. */
THRICE_EXPORT thrice_status thrice_run(thrice_session* session, const thrice_tensor* inputs,
                                       size_t num_inputs, thrice_result** result);

/* Enqueues one run on the caller's stream and returns; results lie on the device and are written in the order
 * of the stream. Device inputs are used where they are (a CUDA address that is no multiple of 128 is copied)
 * and must stay until the stream has passed the run. Inputs on the host, and plans with host steps, make the
 * host wait.
 * stream:  CUDA: a CUstream of the device's primary context (a cudaStream_t is one); NULL is the default
 *          stream. OpenCL: a cl_command_queue; NULL is a queue of the session.
 *          It must outlive the session or be given to thrice_forget_stream first. A stream has memory of its
 * own. Reuse:   memory of a freed result is used by later runs in the stream's order. Whoever reads it on
 * another stream waits for that read before freeing. Errors:  as thrice_run; those of the device may come
 * with a later call. */
THRICE_EXPORT thrice_status thrice_run_async(thrice_session* session, void* stream,
                                             const thrice_tensor* inputs, size_t num_inputs,
                                             thrice_result** result);
/* Waits for the stream's runs of this session. Errors: LAUNCH_FAILED when one of them failed. */
THRICE_EXPORT thrice_status thrice_synchronize(thrice_session* session, void* stream);
/* Waits for the work on a stream and frees what was kept for it. */
THRICE_EXPORT thrice_status thrice_forget_stream(thrice_session* session, void* stream);

THRICE_EXPORT size_t thrice_result_size(const thrice_result* result); /* number of outputs */
/* A view of output `index`; `data` and `shape` are the result's. Errors: INVALID_ARGUMENT (no such index). */
THRICE_EXPORT thrice_status thrice_result_tensor(const thrice_result* result, size_t index,
                                                 thrice_tensor* tensor);
/* Copies output `index` of a run on `stream` to the host, in the order of the stream, and waits. `bytes` must
 * be its size. Results on the host are copied too. Errors: INVALID_ARGUMENT, LAUNCH_FAILED. */
THRICE_EXPORT thrice_status thrice_read(thrice_session* session, void* stream, const thrice_result* result,
                                        size_t index, void* to, size_t bytes);
/* Output `index` as a DLPack tensor (DLManagedTensor of version 0.x; the caller calls its deleter). It shares
 * the memory, which lives until both it and the result are gone. */
struct DLManagedTensor;
THRICE_EXPORT thrice_status thrice_result_dlpack(const thrice_result* result, size_t index,
                                                 struct DLManagedTensor** tensor);
THRICE_EXPORT void thrice_result_free(thrice_result* result); /* NULL is legal */

/* Puts another release in the place of the present one. It is loaded first; runs that begin after the
 * exchange use it, those under way finish on the old one; none fails because of it. Blocks while loading.
 * Errors: those of thrice_load, and INVALID_ARGUMENT when names, dtypes or shapes of inputs or outputs
 * differ. On any error the present release stays in service. */
THRICE_EXPORT thrice_status thrice_swap(thrice_session* session, const char* path);

#ifdef __cplusplus
}
#endif
#endif
