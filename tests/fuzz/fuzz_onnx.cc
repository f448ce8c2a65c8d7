// libFuzzer target of the ONNX decoder and importer: any bytes give a graph or an Error, never a crash, a
// hang or an internal error.
#include <thrice/status.h>

#include <cstdint>
#include <cstdlib>
#include <span>

#include "frontend/import.h"
#include "frontend/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  thrice::frontend::ImportOptions options;
  options.random_weights = size % 2 == 0;
  try {
    thrice::frontend::import_model_bytes(bytes, "", options);
  } catch (const thrice::Error& error) {
    if (error.code() == thrice::Code::kInternal) std::abort();
  }
  try {
    thrice::frontend::decode_npy(bytes, "fuzz");
  } catch (const thrice::Error& error) {
    if (error.code() == thrice::Code::kInternal) std::abort();
  }
  return 0;
}
