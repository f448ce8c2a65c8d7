// Room of pooling: max (with indices), average and sum over windows, 1 to 3 spatial axes; fused prologue and
// epilogue. Global pooling is a reduction (row room).
// Tactics: naive (one thread an output) | row (one thread `width` neighbouring outputs, taps outside).
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& pool_family();
}
