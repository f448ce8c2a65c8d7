#include "artifact/kernel.h"

namespace thrice::artifact {

const char* language_name(Language language) { return language == Language::kOpenCL ? "opencl" : "cuda"; }

}  // namespace thrice::artifact
