#include "tune/space.h"

#include <algorithm>
#include <set>

namespace thrice::tune {

using artifact::Schedule;

uint64_t point_key(const Point& point) {
  uint64_t key = 0x9e3779b97f4a7c15ull;
  for (const uint16_t choice : point) {
    key = (key ^ (choice + 1ull)) * 0xbf58476d1ce4e5b9ull;
    key ^= key >> 29;
  }
  return key;
}

Space::Space(const artifact::ScheduleSpace& space, Legality legal) : legal_(std::move(legal)) {
  dimensions_.push_back({"tactic", {}});
  std::vector<std::set<int64_t>> choices(1);
  for (const artifact::TacticSpace& tactic : space.tactics) {
    dimensions_[0].choices.push_back(static_cast<int64_t>(labels_.size()));
    labels_.push_back(tactic.family + "/" + tactic.tactic);
    std::vector<size_t>& order = order_.emplace_back();
    double product = 1;
    for (const artifact::Parameter& p : tactic.parameters) {
      const auto same = [&](const Dimension& d) { return d.name == p.name; };
      auto it = std::find_if(dimensions_.begin() + 1, dimensions_.end(), same);
      if (it == dimensions_.end()) {
        it = dimensions_.insert(dimensions_.end(), {p.name, {}});
        choices.emplace_back();
      }
      const auto d = static_cast<size_t>(it - dimensions_.begin());
      order.push_back(d);
      choices[d].insert(p.choices.begin(), p.choices.end());
      product *= static_cast<double>(p.choices.size());
    }
    product_ += product;
  }
  for (size_t d = 1; d < dimensions_.size(); ++d)
    dimensions_[d].choices.assign(choices[d].begin(), choices[d].end());
  for (size_t t = 0; t < space.tactics.size(); ++t) {
    auto& used = used_.emplace_back(dimensions_.size());
    Point first(dimensions_.size(), 0);
    first[0] = static_cast<uint16_t>(t);
    for (size_t p = 0; p < order_[t].size(); ++p) {
      const artifact::Parameter& parameter = space.tactics[t].parameters[p];
      const size_t d = order_[t][p];
      const std::vector<int64_t>& all = dimensions_[d].choices;
      for (const int64_t choice : parameter.choices)
        used[d].push_back(
            static_cast<uint16_t>(std::lower_bound(all.begin(), all.end(), choice) - all.begin()));
      std::sort(used[d].begin(), used[d].end());
      if (!used[d].empty())
        first[d] = used[d][parameter.first >= 0 ? static_cast<size_t>(parameter.first) : used[d].size() / 2];
    }
    if (this->legal(first)) firsts_.push_back(std::move(first));
  }
}

Space::Space(std::string family, const std::vector<std::string>& tactics, std::vector<Dimension> parameters,
             std::vector<Point> points)
    : dimensions_{{"tactic", {}}}, points_(std::move(points)) {
  std::sort(points_.begin(), points_.end());
  points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
  for (Dimension& d : parameters) dimensions_.push_back(std::move(d));
  for (size_t t = 0; t < tactics.size(); ++t) {
    dimensions_[0].choices.push_back(static_cast<int64_t>(t));
    labels_.push_back(family + "/" + tactics[t]);
    auto& order = order_.emplace_back();
    auto& used = used_.emplace_back(dimensions_.size());
    double product = 1;
    for (size_t d = 1; d < dimensions_.size(); ++d) {
      std::set<uint16_t> choices;
      for (const Point& point : points_)
        if (point[0] == t) choices.insert(point[d]);
      const bool is_used =
          tactics.size() == 1 || std::any_of(choices.begin(), choices.end(),
                                             [&](uint16_t c) { return dimensions_[d].choices[c] != 0; });
      if (!is_used) continue;
      order.push_back(d);
      used[d].assign(choices.begin(), choices.end());
      product *= static_cast<double>(choices.size());
    }
    product_ += product;
  }
  places_.reserve(points_.size());
  for (size_t i = 0; i < points_.size(); ++i) places_[point_key(points_[i])] = static_cast<int64_t>(i);
}

int64_t Space::find(const Point& point) const {
  const auto it = places_.find(point_key(point));
  return it == places_.end() ? -1 : it->second;
}

bool Space::legal(const Point& point) const {
  if (!legal_) return find(point) >= 0;
  const auto [it, is_new] = known_.try_emplace(point_key(point));
  if (is_new) it->second = legal_(schedule(point));
  return it->second;
}

Point Space::sample_product(Rng& rng) const {
  Point point(dimensions_.size(), 0);
  const size_t tactic = rng.below(used_.size());
  point[0] = static_cast<uint16_t>(tactic);
  for (const size_t d : order_[tactic])
    if (const auto& used = used_[tactic][d]; !used.empty()) point[d] = used[rng.below(used.size())];
  return point;
}

std::optional<Point> Space::sample(Rng& rng, int attempts) const {
  if (!legal_) {
    if (points_.empty()) return std::nullopt;
    return points_[rng.below(points_.size())];
  }
  if (used_.empty()) return std::nullopt;
  for (int attempt = 0; attempt < attempts; ++attempt)
    if (Point point = sample_product(rng); legal(point)) return point;
  return std::nullopt;
}

std::vector<Point> Space::neighbours(const Point& point) const {
  std::vector<Point> result;
  const size_t tactic = point[0];
  for (const size_t d : order_[tactic]) {
    const auto& used = used_[tactic][d];
    const auto at = std::lower_bound(used.begin(), used.end(), point[d]) - used.begin();
    for (const int step : {-1, 1}) {
      const auto place = at + step;
      if (place < 0 || place >= static_cast<std::ptrdiff_t>(used.size())) continue;
      Point next = point;
      next[d] = used[static_cast<size_t>(place)];
      if (legal(next)) result.push_back(std::move(next));
    }
  }
  return result;
}

std::vector<Point> Space::variations(const Point& point, bool checked) const {
  std::vector<Point> result;
  for (const size_t d : order_[point[0]])
    for (const uint16_t choice : used_[point[0]][d]) {
      if (choice == point[d]) continue;
      Point next = point;
      next[d] = choice;
      if (!checked || legal(next)) result.push_back(std::move(next));
    }
  return result;
}

void Space::make_canonical(Point& point) const {
  const size_t tactic = point[0] = static_cast<uint16_t>(std::min<size_t>(point[0], used_.size() - 1));
  for (size_t d = 1; d < point.size(); ++d) {
    const auto& used = used_[tactic][d];
    if (used.empty()) {
      point[d] = 0;
      continue;
    }
    const auto at = std::lower_bound(used.begin(), used.end(), point[d]);
    point[d] = at == used.end() ? used.back() : *at;
  }
}

std::vector<Point> Space::enumerate(size_t limit) const {
  if (!legal_)
    return {points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(std::min(limit, points_.size()))};
  std::vector<Point> result;
  for (size_t t = 0; t < used_.size(); ++t) {
    const std::vector<size_t>& order = order_[t];
    std::vector<size_t> digit(order.size(), 0);
    for (bool more = true; more && result.size() < limit;) {
      Point point(dimensions_.size(), 0);
      point[0] = static_cast<uint16_t>(t);
      for (size_t p = 0; p < order.size(); ++p) point[order[p]] = used_[t][order[p]][digit[p]];
      if (legal(point)) result.push_back(std::move(point));
      more = false;
      for (size_t p = order.size(); p-- > 0 && !more;) {
        if (++digit[p] < used_[t][order[p]].size())
          more = true;
        else
          digit[p] = 0;
      }
    }
  }
  return result;
}

Schedule Space::schedule(const Point& point) const {
  const std::string& label = labels_[point[0]];
  const size_t slash = label.find('/');
  Schedule schedule{label.substr(0, slash), label.substr(slash + 1), {}};
  for (const size_t d : order_[point[0]])
    schedule.values.emplace_back(dimensions_[d].name, dimensions_[d].choices[point[d]]);
  return schedule;
}

std::optional<Point> Space::point(const Schedule& schedule) const {
  const auto label = std::find(labels_.begin(), labels_.end(), schedule.family + "/" + schedule.tactic);
  if (label == labels_.end()) return std::nullopt;
  Point point(dimensions_.size(), 0);
  const auto tactic = static_cast<size_t>(label - labels_.begin());
  point[0] = static_cast<uint16_t>(tactic);
  if (schedule.values.size() != order_[tactic].size()) return std::nullopt;
  for (const size_t d : order_[tactic]) {
    const auto same = [&](const auto& value) { return value.first == dimensions_[d].name; };
    const auto value = std::find_if(schedule.values.begin(), schedule.values.end(), same);
    if (value == schedule.values.end()) return std::nullopt;
    const auto& choices = dimensions_[d].choices;
    const auto at = std::lower_bound(choices.begin(), choices.end(), value->second);
    if (at == choices.end() || *at != value->second) return std::nullopt;
    const auto place = static_cast<uint16_t>(at - choices.begin());
    const auto& used = used_[tactic][d];
    if (!std::binary_search(used.begin(), used.end(), place)) return std::nullopt;
    point[d] = place;
  }
  return point;
}

}  // namespace thrice::tune
