// The space that an agent searches, as a plain value: dimensions, what is legal, and moves within it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "artifact/schedule.h"
#include "base/rng.h"

namespace thrice::tune {

// One configuration: for each dimension the place of its choice. Dimensions that the chosen tactic does not
// use stand at 0, so that equal schedules are equal points.
using Point = std::vector<uint16_t>;
uint64_t point_key(const Point& point);  // 64-bit hash, the same on every machine

// Dimension 0 is the tactic ("family/tactic" in `labels`); parameters of one name are one dimension, whose
// choices are what any tactic offers, ascending.
struct Dimension {
  std::string name;
  std::vector<int64_t> choices;
};

class Space {
 public:
  using Legality = std::function<bool(const artifact::Schedule&)>;  // pure; called often

  Space() = default;
  // The product of each tactic's choices, less what `legal` refuses.
  Space(const artifact::ScheduleSpace& space, Legality legal);
  // Exactly these. Point[0] is the place of its tactic in `tactics`. Where there are several, a tactic offers
  // what its points have, and does not use a parameter that is 0 in all of them.
  Space(std::string family, const std::vector<std::string>& tactics, std::vector<Dimension> parameters,
        std::vector<Point> points);

  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  size_t tactics() const { return used_.size(); }
  const std::string& label(size_t tactic) const { return labels_[tactic]; }
  // Choices of a dimension that a tactic offers; empty where it does not use it.
  const std::vector<uint16_t>& allowed(size_t tactic, size_t dimension) const {
    return used_[tactic][dimension];
  }
  double product() const { return product_; }  // points before legality
  // Every legal point in lexicographic order, where the space was given as a list; else empty.
  const std::vector<Point>& listed() const { return points_; }
  int64_t find(const Point& point) const;  // its place in listed(), or -1

  bool legal(const Point& point) const;
  // Uniform over what is listed; else over tactics, then over each tactic's product. nullopt when `attempts`
  // draws were all illegal.
  std::optional<Point> sample(Rng& rng, int attempts = 200) const;
  // Any point of the product, legal or not.
  Point sample_product(Rng& rng) const;
  // Legal points that differ in one parameter by one step up or down; dimensions in order, down before up.
  std::vector<Point> neighbours(const Point& point) const;
  // Legal points that differ in one parameter, by any step. `checked` false: illegal ones too.
  std::vector<Point> variations(const Point& point, bool checked = true) const;
  // Unused dimensions to 0, choices that the tactic does not offer to the nearest that it does.
  void make_canonical(Point& point) const;
  // Every legal point in order, at most `limit`.
  std::vector<Point> enumerate(size_t limit) const;

  artifact::Schedule schedule(const Point& point) const;
  std::optional<Point> point(const artifact::Schedule& schedule) const;  // nullopt: not of this space
  // Each tactic's first configuration: what its parameters say, the middle elsewhere. Legal ones only.
  const std::vector<Point>& firsts() const { return firsts_; }

 private:
  std::vector<Dimension> dimensions_;
  std::vector<std::string> labels_;         // by tactic
  std::vector<std::vector<size_t>> order_;  // by tactic: its parameters' dimensions in its own order
  std::vector<std::vector<std::vector<uint16_t>>> used_;  // by tactic and dimension
  std::vector<Point> points_, firsts_;
  std::unordered_map<uint64_t, int64_t> places_;
  Legality legal_;
  mutable std::unordered_map<uint64_t, bool> known_;  // legality asks a family, which may take microseconds
  double product_ = 0;
};

}  // namespace thrice::tune
