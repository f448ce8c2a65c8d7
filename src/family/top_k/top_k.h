// The k largest or smallest elements along an axis, by counting how many come before each.
#pragma once
#include "family/family.h"

namespace thrice::family {
const Family& top_k_family();
}
