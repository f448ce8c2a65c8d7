// What tests ask the scripted driver (tests/fake_cuda/): the functions that libcuda.so.1 of the build's
// folder fake_cuda/ has beside those of a driver.
#pragma once
#include <cstddef>

extern "C" {
// Describes cards and failures anew (driver.cc says how); objects that live go on living.
void fake_cuda_script(const char* text);
// Calls of a driver function so far: "MemAlloc_v2". "*" = all.
long long fake_cuda_calls(const char* function);
// Objects that live: contexts, modules, streams, events, graphs, execs, buffers, bytes.
long long fake_cuda_live(const char* kind);
// Called for each kernel that runs, with its name and the 64-bit values of its arguments: host addresses,
// since device memory is host memory here. nullptr: kernels do nothing. One kernel runs at a time.
typedef void (*fake_cuda_kernel)(const char* name, const unsigned long long* arguments, size_t count);
void fake_cuda_on_kernel(fake_cuda_kernel function);
}
