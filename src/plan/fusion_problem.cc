#include "plan/fusion_problem.h"

#include <algorithm>
#include <numeric>

namespace thrice::plan {

Reach reach_of(const std::vector<std::vector<int>>& after) {
  const size_t n = after.size();
  Reach reach{std::vector<AtomSet>(n, AtomSet(n)), std::vector<AtomSet>(n, AtomSet(n))};
  for (size_t a = n; a-- > 0;)
    for (const int b : after[a]) {
      reach.below[a].add(static_cast<size_t>(b));
      reach.below[a] |= reach.below[static_cast<size_t>(b)];
    }
  for (size_t a = 0; a < n; ++a)
    for (const int b : after[a]) {
      reach.above[static_cast<size_t>(b)].add(a);
      reach.above[static_cast<size_t>(b)] |= reach.above[a];
    }
  return reach;
}

namespace {

class Union {
 public:
  explicit Union(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int root(int a) {
    while (parent_[static_cast<size_t>(a)] != a) {
      parent_[static_cast<size_t>(a)] = parent_[static_cast<size_t>(parent_[static_cast<size_t>(a)])];
      a = parent_[static_cast<size_t>(a)];
    }
    return a;
  }
  void join(int a, int b) {
    a = root(a);
    b = root(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

// Strongly connected components of the pieces (Tarjan's, with a stack of its own): joined.
void join_cycles(const std::vector<std::vector<int>>& after, Union& pieces) {
  const size_t n = after.size();
  std::vector<std::vector<int>> next(n);  // by root
  for (size_t a = 0; a < n; ++a)
    for (const int b : after[a]) {
      const int from = pieces.root(static_cast<int>(a)), to = pieces.root(b);
      if (from != to) next[static_cast<size_t>(from)].push_back(to);
    }
  std::vector<int> number(n, -1), low(n, 0);
  std::vector<uint8_t> open(n, 0);
  std::vector<int> stack;
  std::vector<std::pair<int, size_t>> path;  // piece, which of its successors is next
  std::vector<std::pair<int, int>> joins;
  int count = 0;
  const auto enter = [&](int p) {
    number[static_cast<size_t>(p)] = low[static_cast<size_t>(p)] = count++;
    open[static_cast<size_t>(p)] = 1;
    stack.push_back(p);
    path.emplace_back(p, 0);
  };
  for (size_t a = 0; a < n; ++a) {
    const int start = pieces.root(static_cast<int>(a));
    if (number[static_cast<size_t>(start)] >= 0) continue;
    enter(start);
    while (!path.empty()) {
      auto& [p, i] = path.back();
      const auto at = static_cast<size_t>(p);
      if (i < next[at].size()) {
        const int q = next[at][i++];
        if (number[static_cast<size_t>(q)] < 0)
          enter(q);
        else if (open[static_cast<size_t>(q)])
          low[at] = std::min(low[at], number[static_cast<size_t>(q)]);
        continue;
      }
      const int done = p;
      path.pop_back();
      if (!path.empty()) {
        int& above = low[static_cast<size_t>(path.back().first)];
        above = std::min(above, low[static_cast<size_t>(done)]);
      }
      if (low[static_cast<size_t>(done)] != number[static_cast<size_t>(done)]) continue;
      for (int q = -1; q != done;) {
        q = stack.back();
        stack.pop_back();
        open[static_cast<size_t>(q)] = 0;
        joins.emplace_back(done, q);
      }
    }
  }
  for (const auto& [p, q] : joins) pieces.join(p, q);
}

}  // namespace

std::vector<FusionPiece> split(const FusionProblem& problem) {
  const size_t n = problem.size();
  Union pieces(n);
  for (const CandidateRegion& c : problem.candidates)
    for (const int a : c.atoms) pieces.join(c.atoms[0], a);
  join_cycles(problem.after, pieces);
  std::vector<FusionPiece> result;
  std::vector<int> piece_of(n), place(n);
  for (size_t a = 0; a < n; ++a) {  // a root is the smallest of its piece
    const auto root = static_cast<size_t>(pieces.root(static_cast<int>(a)));
    if (root == a) {
      piece_of[a] = static_cast<int>(result.size());
      result.emplace_back();
    }
    piece_of[a] = piece_of[root];
    FusionPiece& piece = result[static_cast<size_t>(piece_of[a])];
    place[a] = static_cast<int>(piece.atoms.size());
    piece.atoms.push_back(static_cast<int>(a));
  }
  for (FusionPiece& piece : result) piece.problem.after.resize(piece.atoms.size());
  for (size_t a = 0; a < n; ++a)
    for (const int b : problem.after[a])
      if (piece_of[a] == piece_of[static_cast<size_t>(b)])
        result[static_cast<size_t>(piece_of[a])].problem.after[static_cast<size_t>(place[a])].push_back(
            place[static_cast<size_t>(b)]);
  for (size_t c = 0; c < problem.candidates.size(); ++c) {
    CandidateRegion inner = problem.candidates[c];
    FusionPiece& piece = result[static_cast<size_t>(piece_of[static_cast<size_t>(inner.atoms.front())])];
    for (int& a : inner.atoms) a = place[static_cast<size_t>(a)];
    piece.candidates.push_back(static_cast<int>(c));
    piece.problem.candidates.push_back(std::move(inner));
  }
  return result;
}

}  // namespace thrice::plan
