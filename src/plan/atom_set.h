// A set of small numbers below a fixed bound: atoms of a fusion problem.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace thrice::plan {

// Operations on two sets want equal bounds.
class AtomSet {
 public:
  explicit AtomSet(size_t bound = 0) : words_((bound + 63) / 64, 0) {}

  bool has(size_t a) const { return (words_[a / 64] >> (a % 64)) & 1; }
  void add(size_t a) { words_[a / 64] |= uint64_t{1} << (a % 64); }
  AtomSet& operator|=(const AtomSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
    return *this;
  }
  bool meets(const AtomSet& other) const {
    for (size_t w = 0; w < words_.size(); ++w)
      if (words_[w] & other.words_[w]) return true;
    return false;
  }
  bool contains(const AtomSet& other) const {
    for (size_t w = 0; w < words_.size(); ++w)
      if (other.words_[w] & ~words_[w]) return false;
    return true;
  }
  // Is every atom of both `a` and `b` one of these?
  bool contains_common(const AtomSet& a, const AtomSet& b) const {
    for (size_t w = 0; w < words_.size(); ++w)
      if (a.words_[w] & b.words_[w] & ~words_[w]) return false;
    return true;
  }
  size_t count() const {
    size_t n = 0;
    for (const uint64_t word : words_) n += static_cast<size_t>(std::popcount(word));
    return n;
  }
  template <class Body>
  void each(Body body) const {  // ascending
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t left = words_[w]; left; left &= left - 1)
        body(w * 64 + static_cast<size_t>(std::countr_zero(left)));
  }
  bool operator==(const AtomSet&) const = default;
  size_t hash() const {
    uint64_t h = 0x9e3779b97f4a7c15ull;
    for (const uint64_t word : words_) {
      h ^= word;
      h *= 0xff51afd7ed558ccdull;
      h ^= h >> 32;
    }
    return static_cast<size_t>(h);
  }

 private:
  std::vector<uint64_t> words_;
};

struct AtomSetHash {
  size_t operator()(const AtomSet& set) const { return set.hash(); }
};

}  // namespace thrice::plan
