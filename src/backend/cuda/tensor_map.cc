// Source: CUDA driver API reference, tensor map object management (values of the constants, limits).
#include "backend/cuda/tensor_map.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::backend::cuda {

void EncodedMap::encode(const Context& c, const artifact::TensorMap& map, CUdeviceptr address,
                        const std::string& kernel) {
  constexpr int kElements16 = 1, kSwizzle128 = 3,
                kPromotion256 = 3;  // elements are only moved: f16 and bf16 alike
  if (!c.api.has_tensor_maps)
    throw Error(Code::kUnsupported, fmt::format("{}: kernel {} needs tensor maps, which this driver lacks: "
                                                "update it to 525 (CUDA 12.0) or newer",
                                                c.spec.id, kernel));
  unsigned long long extents[3], strides[2];
  unsigned box[3], steps[3] = {1, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    extents[i] = static_cast<unsigned long long>(map.extents[i]);
    box[i] = static_cast<unsigned>(map.box[i]);
  }
  for (size_t i = 0; i < 2; ++i) strides[i] = static_cast<unsigned long long>(map.strides[i]);
  const Use use(c);
  const CUresult code =
      c.api.TensorMapEncodeTiled(bytes, kElements16, 3, reinterpret_cast<void*>(address), extents, strides,
                                 box, steps, 0, kSwizzle128, kPromotion256, 0);
  if (code != kCuSuccess)
    throw Error(Code::kLaunchFailed,
                fmt::format("{}: kernel {}: the driver refuses a tensor map of {}x{}x{} elements in boxes of "
                            "{}x{}x{}: {}",
                            c.spec.id, kernel, extents[0], extents[1], extents[2], box[0], box[1], box[2],
                            c.api.error(code)));
}

}  // namespace thrice::backend::cuda
