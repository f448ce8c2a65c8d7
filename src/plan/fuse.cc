#include "plan/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/region_name.h"
#include "plan/fusion_dp.h"
#include "plan/region_judge.h"

namespace thrice::plan {

namespace {

using artifact::FusionAlternative;
using artifact::FusionDecision;
using Choice = std::vector<int>;  // candidates of a piece

constexpr int64_t kMostStatesOfOthers = 2'000;  // the next best is looked for where that is quick
constexpr size_t kMostOthers = 12;

// What was decided about a piece.
struct Answer {
  Choice chosen, greedy, next;  // next: the best one without one of the chosen regions; empty: not known
  double us = 0, greedy_us = 0, next_us = 0;
  bool exact = false;
  int64_t states = 0;
};

class Fuser {
 public:
  Fuser(const ir::Graph& graph, RegionJudge& judge, const Grouping& greedy, FusionSummary& summary)
      : graph_(graph), judge_(judge), summary_(summary) {
    problem_.after = judge.after();
    std::set<std::vector<int>> taken;
    for (size_t a = 0; a < problem_.size(); ++a) {
      judge_.take({static_cast<int>(a)});
      taken.insert({static_cast<int>(a)});
    }
    std::map<int, std::vector<int>> merged;
    for (size_t a = 0; a < problem_.size(); ++a)
      merged[greedy.group_of(judge.nodes({static_cast<int>(a)})[0])].push_back(static_cast<int>(a));
    for (const auto& [group, atoms] : merged) {
      judge_.take(atoms);
      taken.insert(atoms);
      greedy_.insert(atoms);
    }
    const Growth growth = grow_candidates(
        problem_.after, {}, [&](const std::vector<int>& atoms) { return judge_.verdict(atoms); });
    taken.insert(growth.taken.begin(), growth.taken.end());
    complete_ = static_cast<int64_t>(growth.complete);
    judge_.settle();
    for (const auto& atoms : taken) problem_.candidates.push_back({atoms, judge_.cost(atoms).price()});
  }

  // Groups to merge, by atom.
  std::vector<std::vector<int>> run() {
    std::vector<std::vector<int>> merges;
    const std::vector<FusionPiece> pieces = split(problem_);
    solve_small_first(pieces);
    for (const FusionPiece& piece : pieces) {
      const Answer answer = decide(piece);
      summary_.us += answer.us;
      summary_.greedy_us += answer.greedy_us;
      for (const int c : answer.chosen) merges.push_back(atoms_of(piece, c));
      if (piece.candidates.size() > piece.atoms.size()) tell(piece, answer);
    }
    summary_.candidates = static_cast<int64_t>(problem_.candidates.size());
    return merges;
  }

 private:
  const std::vector<int>& atoms_of(const FusionPiece& piece, int c) const {
    return problem_.candidates[static_cast<size_t>(piece.candidates[static_cast<size_t>(c)])].atoms;
  }

  static std::string key_of(const FusionPiece& piece, const Choice& greedy) {
    std::string key;
    for (const auto& after : piece.problem.after) {
      for (const int b : after) key += fmt::format("{} ", b);
      key += ";";
    }
    for (const CandidateRegion& c : piece.problem.candidates) {
      for (const int a : c.atoms) key += fmt::format("{} ", a);
      key += fmt::format("={};", c.us);
    }
    for (const int c : greedy) key += fmt::format("g{}", c);
    return key;
  }

  Answer decide(const FusionPiece& piece) {
    Answer answer;
    for (size_t c = 0; c < piece.problem.candidates.size(); ++c)
      if (greedy_.count(atoms_of(piece, static_cast<int>(c)))) {
        answer.greedy.push_back(static_cast<int>(c));
        answer.greedy_us += piece.problem.candidates[c].us;
      }
    answer.chosen = answer.greedy;
    answer.us = answer.greedy_us;
    answer.exact = true;
    if (piece.candidates.size() == piece.atoms.size()) return answer;
    const auto [it, is_new] = answers_.emplace(key_of(piece, answer.greedy), answer);
    if (!is_new) return it->second;  // a layer like one before
    const FusionAnswer found = search(piece, answer.greedy_us, SearchBounds{}.states, -1);
    answer.states = found.states;
    answer.exact = found.found;
    // Of equals the greedy planner's answer is taken: more is known of its kernels.
    if (found.found && found.us < answer.greedy_us * (1 - 1e-9)) {
      answer.chosen = found.candidates;
      answer.us = found.us;
    }
    if (answer.exact && found.states <= kMostStatesOfOthers) look_for_next(piece, answer);
    return it->second = answer;
  }
  // Each gets an even share of the looks that are left to it and to larger ones: one wide piece does not take
  // what others need little of.
  void solve_small_first(const std::vector<FusionPiece>& pieces) {
    std::vector<const FusionPiece*> order;
    for (const FusionPiece& piece : pieces)
      if (piece.candidates.size() > piece.atoms.size()) order.push_back(&piece);
    std::stable_sort(order.begin(), order.end(), [](const FusionPiece* a, const FusionPiece* b) {
      return a->candidates.size() < b->candidates.size();
    });
    for (size_t i = 0; i < order.size(); ++i) {
      share_ = summary_.looks + (kMostLooksInAll - summary_.looks) / static_cast<int64_t>(order.size() - i);
      decide(*order[i]);
    }
  }

  FusionAnswer search(const FusionPiece& piece, double at_most, int64_t most_states, int without) {
    const FusionAnswer found =
        solve(piece.problem, at_most, {most_states, std::max<int64_t>(1, share_ - summary_.looks)}, without);
    summary_.states += found.states;
    summary_.looks += found.looks;
    return found;
  }

  void look_for_next(const FusionPiece& piece, Answer& answer) {
    size_t tried = 0;
    for (const int c : answer.chosen) {
      if (piece.problem.candidates[static_cast<size_t>(c)].atoms.size() < 2 || ++tried > kMostOthers)
        continue;
      const double most = answer.next.empty() ? std::numeric_limits<double>::infinity() : answer.next_us;
      const FusionAnswer other = search(piece, most, 4 * kMostStatesOfOthers, c);
      if (!other.found || (!answer.next.empty() && !(other.us < answer.next_us))) continue;
      answer.next = other.candidates;
      answer.next_us = other.us;
    }
  }

  FusionAlternative alternative(const FusionPiece& piece, const std::string& name, double us,
                                const Choice& choice, const Choice* but) {
    FusionAlternative result{name, us, {}};
    for (const int c : choice) {
      if (but && std::count(but->begin(), but->end(), c)) continue;
      const std::vector<int>& atoms = atoms_of(piece, c);
      const RegionCost cost = judge_.cost(atoms);
      result.regions.push_back(
          {ir::region_name(graph_, judge_.nodes(atoms)), cost.us, cost.uncertainty_us, cost.source});
    }
    return result;
  }

  void tell(const FusionPiece& piece, const Answer& answer) {
    ++summary_.pieces;
    summary_.exact_pieces += answer.exact;
    const auto [it, is_new] =
        told_.emplace(std::pair(judge_.signature(piece.atoms), answer.us), summary_.decisions.size());
    if (!is_new) {
      ++summary_.decisions[it->second].uses;
      return;
    }
    FusionDecision decision;
    for (const int a : piece.atoms) decision.operators.push_back(ir::region_name(graph_, judge_.nodes({a})));
    decision.exact = answer.exact;
    decision.candidates = static_cast<int64_t>(piece.candidates.size());
    decision.complete = complete_;
    decision.states = answer.states;
    Choice alone;
    double alone_us = 0;
    for (size_t c = 0; c < piece.problem.candidates.size(); ++c)
      if (piece.problem.candidates[c].atoms.size() == 1) {
        alone.push_back(static_cast<int>(c));
        alone_us += piece.problem.candidates[c].us;
      }
    const auto& chosen = answer.chosen;
    decision.alternatives.push_back(alternative(piece, "chosen", answer.us, chosen, nullptr));
    const bool is_greedy = answer.chosen == answer.greedy;
    if (!is_greedy)
      decision.alternatives.push_back(alternative(piece, "greedy", answer.greedy_us, answer.greedy, &chosen));
    if (!answer.next.empty())
      decision.alternatives.push_back(alternative(piece, "next best", answer.next_us, answer.next, &chosen));
    if (chosen.size() < alone.size())
      decision.alternatives.push_back(alternative(piece, "one by one", alone_us, alone, &chosen));
    decision.why = why(answer, is_greedy, alone_us);
    summary_.decisions.push_back(std::move(decision));
  }

  static std::string why(const Answer& answer, bool is_greedy, double alone_us) {
    if (!answer.exact)
      return fmt::format(
          "greedy fallback: the search was cut off after {} states; the greedy planner's regions "
          "were taken",
          answer.states);
    std::string text =
        is_greedy ? std::string("no partition is below the greedy planner's")
                  : fmt::format("{:.2f} us below the greedy planner's", answer.greedy_us - answer.us);
    if (!answer.next.empty())
      text += fmt::format(", {:.2f} us below the next best", answer.next_us - answer.us);
    return text + fmt::format(", {:.2f} us below one by one", alone_us - answer.us);
  }

  const ir::Graph& graph_;
  RegionJudge& judge_;
  FusionSummary& summary_;
  FusionProblem problem_;
  std::set<std::vector<int>> greedy_;
  int64_t complete_ = 0;
  std::map<std::string, Answer> answers_;
  int64_t share_ = 0;  // of looks: the piece in hand may add up to here
  std::map<std::pair<Signature, double>, size_t> told_;
};

}  // namespace

FusionSummary& FusionSummary::operator+=(FusionSummary other) {
  us += other.us;
  greedy_us += other.greedy_us;
  pieces += other.pieces;
  exact_pieces += other.exact_pieces;
  candidates += other.candidates;
  states += other.states;
  looks += other.looks;
  judged += other.judged;
  std::move(other.decisions.begin(), other.decisions.end(), std::back_inserter(decisions));
  return *this;
}

FusionSummary fuse_exactly(const ir::Graph& graph, const analysis::Placement& placement,
                           const std::vector<ir::Fact>& facts, CostModel& costs, const Grouping& greedy,
                           Grouping& groups) {
  FusionSummary summary;
  if (groups.ordered().size() > kMostAtoms) {
    FusionDecision decision;
    decision.exact = false;
    decision.why = fmt::format("greedy fallback: more than {} operators", kMostAtoms);
    summary.decisions.push_back(std::move(decision));
    groups = greedy;
    return summary;
  }
  RegionJudge judge(graph, placement, facts, costs, groups);
  for (const std::vector<int>& atoms : Fuser(graph, judge, greedy, summary).run())
    for (size_t i = 1; i < atoms.size(); ++i)
      groups.merge(judge.groups()[static_cast<size_t>(atoms[0])],
                   judge.groups()[static_cast<size_t>(atoms[i])]);
  summary.judged = judge.judged();
  return summary;
}

}  // namespace thrice::plan
