// What lies between the scores and the softmax, where it is one of the usual things: a factor, and a mask
// that hides later keys.
#pragma once
#include "family/attention/attention_form.h"

namespace thrice::family {

struct ScoreForm {
  // The softmax's operand is the score times `scale`, which is above zero, where the mask shows the key.
  bool is_plain = false;
  double scale = 1;
  // Query m sees the keys n <= m + shift; others are -Inf whatever their score.
  bool is_causal = false;
  int64_t shift = 0;
};

// `form.factors` join the scale.
ScoreForm find_scores(const Workload& workload, const AttentionForm& form);

}  // namespace thrice::family
