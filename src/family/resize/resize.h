// Room of operators that read at fractional positions: resize (nearest, linear, cubic in every coordinate
// mode), grid_sample, roi_align; fused prologue and epilogue. Tactics: `naive`, one work-item an
// element; `planes` (resize), one a position of several planes. Antialiasing has as many neighbours as the
// scale asks for and is left to the host.
#pragma once
#include "family/emitter.h"
#include "family/heavy.h"

namespace thrice::family {
const Family& resize_family();

// The three operators: text of one element of the result, written into the emitter; the caller stores it.
// `before_values` is called between positions and weights, which the resized axes alone decide, and values.
void write_resize(Emitter& e, const HeavyRegion& region, const Coords& at,
                  const std::function<void()>& before_values);
// How many axes come before the first that is resized.
size_t leading_axes(const Workload& workload, const HeavyRegion& region);
void write_grid_sample(Emitter& e, const HeavyRegion& region, const Coords& at);
void write_roi_align(Emitter& e, const HeavyRegion& region, const Coords& at);
Refusal refuse_resize(const Workload& workload, const HeavyRegion& region);
}  // namespace thrice::family
