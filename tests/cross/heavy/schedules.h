// Schedules to test a heavy family with: the default, each tactic's first legal one, and random legal ones.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cross/family_runner.h"
#include "family/conv/conv.h"
#include "family/matmul/matmul.h"
#include "family/pool/pool.h"
#include "family/resize/resize.h"

namespace thrice::testing {

inline std::vector<artifact::Schedule> some_schedules(const ir::Workload& w, const family::Family& f,
                                                      const std::vector<ir::Fact>& facts,
                                                      const target::DeviceSpec& device, int per_tactic,
                                                      uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<artifact::Schedule> schedules{f.default_schedule(w, facts, device)};
  for (const auto& tactic : f.space(w, facts, device).tactics) {
    int found = 0;
    for (int trial = 0; trial < 200 && found < per_tactic; ++trial) {
      artifact::Schedule s{tactic.family, tactic.tactic, {}};
      for (const auto& p : tactic.parameters)
        s.values.emplace_back(p.name, p.choices[random() % p.choices.size()]);
      if (f.illegal(w, s, device) || std::find(schedules.begin(), schedules.end(), s) != schedules.end())
        continue;
      schedules.push_back(s);
      ++found;
    }
  }
  return schedules;
}

// Every tactic on one workload at each binding; `limit` 0 = exactly equal.
inline void check_tactics(Builder& builder, const family::Family& f,
                          const std::vector<ir::Bindings>& bindings, ir::InputKind kind, double limit,
                          int per_tactic = 2) {
  const ir::Workload w = builder.workload();
  const auto refusal = f.match(w);
  ASSERT_FALSE(refusal.has_value()) << *refusal << "\n" << ir::print(w.graph);
  auto& runner = FamilyRunner::instance();
  const auto facts = ir::facts_at(w.graph, bindings[0]);
  const auto schedules =
      some_schedules(w, f, facts, runner.spec(), per_tactic, std::hash<std::string>{}(w.hash));
  runner.keep_cuda(w, f, facts);
  for (const auto& s : schedules) {
    uint64_t seed = 1;
    for (const auto& b : bindings) {
      SCOPED_TRACE(FamilyRunner::bindings_text(b));
      // A vendor's library sums in its own order: it is held to the product's limit (docs/numerics.md).
      const bool library = s.tactic == "cublaslt" || s.tactic == "cudnn";
      runner.check(w, f, s, ir::make_inputs(w.graph, b, kind, seed++),
                   library && limit > 0 ? std::max(limit, 1e-5) : limit);
      if (::testing::Test::HasFailure()) return;
    }
  }
}
inline void check_exact(Builder& builder, const family::Family& f,
                        const std::vector<ir::Bindings>& bindings = {{}}, int per_tactic = 2) {
  check_tactics(builder, f, bindings, ir::InputKind::kSmallIntegers, 0, per_tactic);
}
inline void check_normal(Builder& builder, const family::Family& f,
                         const std::vector<ir::Bindings>& bindings = {{}}, int per_tactic = 1) {
  check_tactics(builder, f, bindings, ir::InputKind::kNormal, -1, per_tactic);
}

}  // namespace thrice::testing
