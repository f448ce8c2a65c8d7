// Scatter along an axis or by index tuples: a copy, then updates in row-major order, one work-item a target
// line.
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& scatter_family();
}
