#include "family/prelude.h"

#include "family/kernel_text.h"

namespace thrice::family {

std::string prelude(artifact::Language language) {
  const char* own = language == artifact::Language::kCuda ? "cuda/prelude.cuh" : "opencl/prelude.cl";
  return kernel_text(own) + kernel_text("portable/operators.h");
}

}  // namespace thrice::family
