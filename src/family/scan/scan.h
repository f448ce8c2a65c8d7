// Cumulative sums and products along an axis, a work-item a line.
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& scan_family();
}
