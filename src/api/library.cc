// The functions of thrice.h that need no session: versions, names, devices.
#include <thrice/dtype.h>

#include <cstdlib>

#include "api/guard.h"
#include "backend/backends_json.h"

namespace thrice::api {

std::string& last_message() {
  thread_local std::string message;
  return message;
}

// The numbers of thrice.h are those of the enumerations inside: a new entry in the middle of one would move
// them.
static_assert(THRICE_INVALID_ARGUMENT == static_cast<int>(Code::kInvalidArgument));
static_assert(THRICE_NOT_FOUND == static_cast<int>(Code::kNotFound));
static_assert(THRICE_OUT_OF_MEMORY == static_cast<int>(Code::kOutOfMemory));
static_assert(THRICE_LAUNCH_FAILED == static_cast<int>(Code::kLaunchFailed));
static_assert(THRICE_INTERNAL == static_cast<int>(Code::kInternal));
static_assert(THRICE_F32 == static_cast<int>(DType::kF32));
static_assert(THRICE_BF16 == static_cast<int>(DType::kBF16));
static_assert(THRICE_I64 == static_cast<int>(DType::kI64));
static_assert(THRICE_U64 == static_cast<int>(DType::kU64));
static_assert(THRICE_BOOL == static_cast<int>(DType::kBool));

}  // namespace thrice::api

using namespace thrice;

uint32_t thrice_abi_version(void) { return THRICE_ABI_VERSION; }
const char* thrice_version(void) { return THRICE_VERSION; }
const char* thrice_message(void) { return api::last_message().c_str(); }

const char* thrice_status_name(thrice_status status) {
  return status < THRICE_OK || status > THRICE_INTERNAL ? "?" : code_name(static_cast<Code>(status));
}
const char* thrice_dtype_name(thrice_dtype dtype) {
  // dtype_name gives views of literals, which end in a zero.
  return dtype < THRICE_F32 || dtype > THRICE_BOOL ? "?" : dtype_name(static_cast<DType>(dtype)).data();
}
size_t thrice_dtype_bytes(thrice_dtype dtype) {
  return dtype < THRICE_F32 || dtype > THRICE_BOOL ? 0 : dtype_bytes(static_cast<DType>(dtype));
}

thrice_status thrice_devices_json(char** json) {
  return api::guarded([&] {
    if (!json) throw Error(Code::kInvalidArgument, "json is NULL");
    *json = api::copy_text(backend::backends_json(backend::list_backends()));
  });
}
void thrice_free(char* text) { std::free(text); }
