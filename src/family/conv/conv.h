// Room of convolutions: conv and conv_transpose, 1 to 3 spatial axes, groups, depthwise, any stride, dilation
// and padding, with fused prologue, bias and epilogue. Tactics: naive (one thread an element) | implicit
// (tiled product, both languages) | pointwise (1x1 as a product by vectors) | panel and implicit_panel (1x1,
// and any, as a product out of copied panels: CPUs) | dot (1x1 on one position) | direct (register tiles over
// channels x row) | depthwise | taps (depthwise, both languages) | subpixel and subpixel_tiled
// (conv_transpose whose stride is its kernel) | cublaslt and cudnn (a vendor's library where the device has
// it).
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& conv_family();
}
