// What critics see of a configuration, standardised over the choices: the logarithm of each parameter; of
// those with choices that are no powers of two also the largest power of two that divides it (warps and
// vectors care); and one number for each tactic where there are several.
#pragma once
#include <vector>

#include "tune/space.h"

namespace thrice::tune {

class Features {
 public:
  explicit Features(const Space& space);
  size_t width() const { return width_; }
  void write(const Point& point, float* row) const;  // width() numbers

 private:
  struct Column {
    size_t dimension;
    std::vector<float> values;  // by choice
  };
  std::vector<Column> columns_;
  size_t tactics_ = 0;  // one-hot columns; 0 where there is one tactic
  size_t width_ = 0;
};

}  // namespace thrice::tune
