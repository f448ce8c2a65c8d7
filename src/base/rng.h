// A small random generator whose sequence is the same on every machine and compiler (std distributions are
// not).
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace thrice {

// splitmix64. Source: Steele, Lea, Flood 2014 ("Fast splittable pseudorandom number generators").
class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  size_t below(size_t n) { return n < 2 ? 0 : static_cast<size_t>(uniform() * static_cast<double>(n)); }
  double normal() {  // Box-Muller; the second value is dropped to keep one draw = two nexts
    const double u = 1 - uniform(), v = uniform();
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

 private:
  uint64_t state_;
};

}  // namespace thrice
