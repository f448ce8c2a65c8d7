#include "tune/critic/features.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace thrice::tune {
namespace {

void standardise(std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v;
  const double n = std::max(1.0, static_cast<double>(values.size()));
  for (const float v : values) squares += (v - sum / n) * (v - sum / n);
  const double scale = squares > 0 ? 1 / std::sqrt(squares / n) : 1;
  for (float& v : values) v = static_cast<float>((v - sum / n) * scale);
}

}  // namespace

Features::Features(const Space& space) : tactics_(space.tactics() > 1 ? space.tactics() : 0) {
  const auto& dimensions = space.dimensions();
  for (size_t d = 1; d < dimensions.size(); ++d) {
    Column logarithm{d, {}}, divisor{d, {}};
    bool has_others = false;
    for (const int64_t choice : dimensions[d].choices) {
      const auto value = static_cast<double>(choice);
      const auto bits = static_cast<uint64_t>(std::abs(choice));
      logarithm.values.push_back(static_cast<float>(std::copysign(std::log2(1 + std::abs(value)), value)));
      divisor.values.push_back(bits ? static_cast<float>(std::countr_zero(bits)) : 0.0f);
      has_others = has_others || (bits > 0 && !std::has_single_bit(bits));
    }
    standardise(logarithm.values);
    standardise(divisor.values);
    columns_.push_back(std::move(logarithm));
    if (has_others) columns_.push_back(std::move(divisor));
  }
  width_ = tactics_ + columns_.size();
}

void Features::write(const Point& point, float* row) const {
  for (size_t t = 0; t < tactics_; ++t) row[t] = point[0] == t ? 1.0f : 0.0f;
  for (size_t i = 0; i < columns_.size(); ++i)
    row[tactics_ + i] = columns_[i].values[point[columns_[i].dimension]];
}

}  // namespace thrice::tune
