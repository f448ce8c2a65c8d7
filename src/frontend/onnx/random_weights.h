// Values for tensors whose data was stripped (docs/stripped_models.md), so that a structure alone can be run,
// timed and checked.
#pragma once
#include <cstdint>

#include "frontend/onnx/model.h"

namespace thrice::frontend::onnx {

// Fills every stripped tensor of the model by the role of its first consumer: product and convolution weights
// N(0, 1/fan_in), variances and scales U[0.5, 1.5], biases, means and tables N(0, 0.02^2), so that
// activations neither die nor explode. The same seed, name and shape give the same values. Cost: about 2 ns
// an element.
void fill_random_weights(Model& model, uint64_t seed);

}  // namespace thrice::frontend::onnx
