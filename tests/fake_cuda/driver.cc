// Mock of libcuda.so.1 for machines without a card: a scripted driver whose device memory is host memory and
// whose kernels do what a test says, so that the CUDA back end's own work (contexts, memory, order, replay,
// errors) is tested. It says nothing about kernels or times. Streams are lazy: work runs when somebody waits,
// so a missing wait or a buffer let go of too early shows. A kernel that reads memory that is gone breaks the
// card as an illegal address does.
//
// FAKE_CUDA_SCRIPT names a text file (or fake_cuda_script() is given the text), one key a line:
//   driver 12080    version it tells         init 100     code of cuInit
//   cards 2         card 1 (later lines are about this card; 0 at the start)
//   name Fake H200  uuid 5e1f0a7c-...        sm 9 0       units 132       memory 1073741824
//   fail MemAlloc_v2 3 2 1   the 3rd call from now on gives code 2, and as many calls as the last number says
//   (1);
//                            700 to 719 break the card: every later call with its context gives that code
// Built twice: with FAKE_CUDA_OLD it lacks what drivers before 525 lack.
#include <algorithm>
#include <cstring>

#include "machine.h"

using namespace fake_cuda;

extern "C" {

void fake_cuda_script(const char* text) {
  const std::lock_guard lock(state().mutex);
  state().script = parse(text);
}
long long fake_cuda_calls(const char* function) {
  const std::lock_guard lock(state().mutex);
  return state().calls[function];
}
long long fake_cuda_live(const char* kind) {
  const std::lock_guard lock(state().mutex);
  return state().live[kind];
}
void fake_cuda_on_kernel(fake_cuda_kernel function) {
  const std::lock_guard lock(state().mutex);
  state().on_kernel = function;
}

int cuInit(unsigned) {
  ENTER_ANYWHERE("Init");
  return state().script.init;
}
int cuDriverGetVersion(int* version) {
  ENTER_ANYWHERE("DriverGetVersion");
  *version = state().script.driver;
  return kOk;
}
int cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> kNames = {
      {1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},       {200, "CUDA_ERROR_INVALID_IMAGE"},
      {201, "CUDA_ERROR_INVALID_CONTEXT"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
      {500, "CUDA_ERROR_NOT_FOUND"},       {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto it = kNames.find(code);
  *name = it == kNames.end() ? nullptr : it->second;
  return it == kNames.end() ? kInvalidValue : kOk;
}
int cuGetErrorString(int, const char** words) {
  *words = "said by the fake driver";
  return kOk;
}

int cuDeviceGetCount(int* count) {
  ENTER_ANYWHERE("DeviceGetCount");
  *count = static_cast<int>(state().script.cards.size());
  return kOk;
}
int cuDeviceGet(int* device, int index) {
  ENTER_ANYWHERE("DeviceGet");
  *device = index;
  return kOk;
}
int cuDeviceGetName(char* to, int size, int device) {
  ENTER_ANYWHERE("DeviceGetName");
  std::strncpy(to, card(static_cast<size_t>(device)).name.c_str(), static_cast<size_t>(size) - 1);
  return kOk;
}
int cuDeviceGetAttribute(int* value, int what, int device) {
  ENTER_ANYWHERE("DeviceGetAttribute");
  const Card& c = card(static_cast<size_t>(device));
  const std::map<int, int> values = {{1, 1024},     {10, 32},      {12, 65536},    {13, 1980000},
                                     {16, c.units}, {36, 2619000}, {37, 5120},     {38, 50 << 20},
                                     {75, c.major}, {76, c.minor}, {97, 227 << 10}};
  const auto it = values.find(what);
  if (it == values.end()) return kInvalidValue;
  *value = it->second;
  return kOk;
}
int cuDeviceGetUuid_v2(unsigned char* to, int device) {
  ENTER_ANYWHERE("DeviceGetUuid_v2");
  std::memcpy(to, card(static_cast<size_t>(device)).uuid, 16);
  return kOk;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  ENTER_ANYWHERE("DeviceTotalMem_v2");
  *bytes = card(static_cast<size_t>(device)).memory;
  return kOk;
}

int cuDevicePrimaryCtxRetain(Context** context, int device) {
  ENTER_ANYWHERE("DevicePrimaryCtxRetain");
  const auto at = static_cast<size_t>(device);
  *context = &state().contexts.at(at);
  (*context)->card = at;
  ++state().live["contexts"];
  return kOk;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER_ANYWHERE("DevicePrimaryCtxRelease_v2");
  --state().live["contexts"];
  return kOk;
}
int cuCtxPushCurrent_v2(Context* context) {
  ENTER_ANYWHERE("CtxPushCurrent_v2");
  current().push_back(context);
  return kOk;
}
int cuCtxPopCurrent_v2(Context** context) {
  const std::lock_guard lock(state().mutex);
  if (current().empty()) return kInvalidContext;
  *context = current().back();
  current().pop_back();
  return kOk;
}

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  ENTER("MemGetInfo_v2");
  const Card& c = card(current().back()->card);
  *free = c.memory - c.used;
  *total = c.memory;
  return kOk;
}
int cuMemAlloc_v2(Address* address, size_t bytes) {
  ENTER("MemAlloc_v2");
  constexpr size_t kAligned = 512;
  const size_t at = current().back()->card;
  Card& c = card(at);
  if (bytes == 0) return kInvalidValue;
  if (bytes > c.memory || c.used + bytes > c.memory) return kOutOfMemory;
  Block block{bytes, at, std::make_unique<char[]>(bytes + kAligned)};
  std::memset(block.memory.get(), 0xCD, bytes + kAligned);  // whoever reads before writing sees it
  *address = (reinterpret_cast<Address>(block.memory.get()) + kAligned - 1) / kAligned * kAligned;
  c.used += bytes;
  ++state().live["buffers"];
  state().live["bytes"] += static_cast<long long>(bytes);
  state().blocks[*address] = std::move(block);
  return kOk;
}
int cuMemFree_v2(Address address) {
  const std::lock_guard lock(state().mutex);
  const int code = enter("MemFree_v2", true);
  finish_all();
  const auto it = state().blocks.find(address);
  if (it == state().blocks.end()) return kInvalidValue;
  card(it->second.card).used -= std::min<uint64_t>(card(it->second.card).used, it->second.bytes);
  --state().live["buffers"];
  state().live["bytes"] -= static_cast<long long>(it->second.bytes);
  state().blocks.erase(it);
  return code;
}
int cuPointerGetAttributes(unsigned, int*, void** values, Address) {
  ENTER("PointerGetAttributes");
  *static_cast<unsigned*>(values[0]) = 0;  // plain host memory
  return kOk;
}

int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
  ENTER("MemcpyHtoDAsync_v2");
  if (!known(stream) || !is_inside(to, bytes, stream->card)) return kInvalidValue;
  const auto* begin = static_cast<const char*>(from);
  stream->queue.emplace_back([to, staged = std::vector<char>(begin, begin + bytes)] {
    std::memcpy(reinterpret_cast<void*>(to), staged.data(), staged.size());
  });
  return kOk;
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
  ENTER("MemcpyDtoHAsync_v2");
  if (!known(stream) || !is_inside(from, bytes, stream->card)) return kInvalidValue;
  stream->queue.emplace_back([=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
  return kOk;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream* stream) {
  ENTER("MemcpyDtoDAsync_v2");
  if (!known(stream) || !is_inside(to, bytes, stream->card) || !is_inside(from, bytes, stream->card))
    return kInvalidValue;
  stream->queue.emplace_back(
      [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
  return kOk;
}
int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream* stream) {
  ENTER("MemsetD8Async");
  if (!known(stream) || !is_inside(to, bytes, stream->card)) return kInvalidValue;
  stream->queue.emplace_back([=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
  return kOk;
}
}
