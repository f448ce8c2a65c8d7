// Predicts what a configuration costs and how sure it is, from what was told.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace thrice::tune {

// Rows of `width` numbers, one after the other.
struct Rows {
  size_t width = 0;
  std::vector<float> values;
  size_t count() const { return width ? values.size() / width : 0; }
  float* add() {
    values.resize(values.size() + width);
    return values.data() + values.size() - width;
  }
  const float* row(size_t i) const { return values.data() + i * width; }
};

struct Predicted {
  std::vector<float> mean, sd;
};

class Critic {
 public:
  virtual ~Critic() = default;
  virtual void fit(const Rows& x,
                   const std::vector<float>& y) = 0;  // y in natural logarithms; may be called often
  virtual Predicted predict(const Rows& x) = 0;
};

}  // namespace thrice::tune
