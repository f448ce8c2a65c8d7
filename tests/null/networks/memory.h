// Checks of the memory that a plan takes, of import_and_plan.cc.
#pragma once
#include <gtest/gtest.h>

#include "exec/predict.h"
#include "target/device_spec.h"

namespace thrice::test {

// A card whose rules pack operands.
inline target::DeviceSpec hopper() {
  target::DeviceSpec card;
  card.api = target::Api::kCuda;
  card.architecture = "sm_90a";
  card.compute_units = 132;
  card.optin_shared_bytes = 227 << 10;
  card.has_f64 = card.has_f16_arithmetic = card.has_int64_atomics = true;
  card.max_alloc_bytes = card.memory_bytes = int64_t{1} << 37;
  return card;
}

inline void expect_no_overlap(const exec::SegmentMemory& memory) {
  for (size_t a = 0; a < memory.pieces.size(); ++a) {
    const exec::BoundPiece& x = memory.pieces[a];
    ASSERT_LE(x.first, x.last);
    ASSERT_LT(x.last, memory.num_moments);
    ASSERT_LE(x.offset + x.bytes, memory.arena_bytes);
    for (size_t b = a + 1; b < memory.pieces.size(); ++b) {
      const exec::BoundPiece& y = memory.pieces[b];
      const bool together = x.first <= y.last && y.first <= x.last && x.bytes > 0 && y.bytes > 0;
      ASSERT_TRUE(!together || x.offset + x.bytes <= y.offset || y.offset + y.bytes <= x.offset);
    }
  }
}

// Temporaries that are alive at one time lie apart, the arena is near its bound, and what is packed takes the
// weights' place.
inline void expect_sound_memory(const ir::Graph& graph, const artifact::Plan& plan,
                                const ir::Bindings& bindings) {
  const std::shared_ptr<const ir::Graph> shared(std::shared_ptr<void>(), &graph);
  const exec::PredictedMemory memory =
      exec::predict_memory(*exec::resolve_plan(shared, std::make_shared<artifact::Plan>(plan)), bindings);
  for (const exec::SegmentMemory& segment : memory.segments) {
    expect_no_overlap(segment);
    EXPECT_GE(segment.arena_bytes, segment.lower_bound);
    EXPECT_LE(static_cast<double>(segment.arena_bytes), 1.15 * static_cast<double>(segment.lower_bound));
  }
  // The most is GPT-2's: its table of tokens is looked up too, so that its packed copy stands beside it.
  EXPECT_LE(static_cast<double>(memory.use.held), 1.35 * static_cast<double>(memory.use.weights) + 4096);
}

}  // namespace thrice::test
