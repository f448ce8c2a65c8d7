// Rules for scores of attention: from the product of queries and keys to the weights of its softmax.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "transform/pack_rules.h"
#include "transform/rewrite.h"

namespace thrice::transform {

using ir::Node;
using ir::Op;
using ir::ValueId;

namespace {

// A hidden key's weight is zero in float64 too: exp(-1000), as long as scores differ by less than some 250.
constexpr double kHidden = -1000;

const char* const kNoMask =
    "attention looks at every key: no mask that hides padded ones was found before it";
const char* const kLaterKeys = "what it does to keys behind the query is not undone by a causal mask";

}  // namespace

// Keys of other sequences become -Inf, once, before a softmax looks at them.
void PackRules::cut(const Node& node, ValueId v) {
  PackState& s = state(v);
  if (s.stage == Stage::kCut) return;
  require(node, s.stage == Stage::kMasked, kNoMask);
  require(node, s.level <= kHidden,
          fmt::format("the mask takes {} from hidden keys, which leaves them some weight", -s.level));
  rows_.prepare_window(s.causal);
  const size_t first = rows_.emitted();
  require(node, !s.wants_causal || s.causal, kLaterKeys);
  s.value = rows_.window(s.value, s.axes, s.causal);
  for (size_t n = first; n < rows_.emitted(); ++n) s.trail->push_back(n);
  s.stage = Stage::kCut;
}

// Layers share their masks.
std::optional<PackMask> PackRules::meaning_of(ValueId value, const PackAxes& axes) {
  for (const KnownMask& known : masks_)
    if (known.value == value && known.axes == axes) return known.meaning;
  masks_.push_back({value, axes, mask_meaning(model_, sizes_, mask_, value, axes)});
  return masks_.back().meaning;
}

void PackRules::scores(const Node& node, const PackAxes& axes) {
  const int r = rank(node.outputs[0]);
  const auto own = [&](ValueId v, int axis) { return std::max(axis + rank(v) - r, -1); };
  size_t at = node.inputs.size();
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (is(node.inputs[i], Kind::kScores) && (at == node.inputs.size() || state(node.inputs[at]).is_nan))
      at = i;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (is(v, Kind::kScores)) {
      const PackState& other = state(v);
      require(node,
              own(v, axes.batch) == other.axes.batch && own(v, axes.tokens) == other.axes.tokens &&
                  own(v, axes.keys) == other.axes.keys && axes.inner == other.axes.inner &&
                  other.stage == state(node.inputs[at]).stage,
              "it joins different scores of attention");
      continue;
    }
    const int keys = own(v, axes.keys);
    if (!is(v, Kind::kPadded) || keys < 0 || sizes_.is_one(v, keys)) continue;
    const auto meaning = meaning_of(v, {own(v, axes.batch), own(v, axes.tokens), keys, axes.inner});
    if (meaning) return mask_scores(node, i, *meaning, at, state(node.inputs[at]));
    const int rows = own(v, axes.tokens);
    require(node, rows < 0 || sizes_.is_one(v, rows),
            "an operand has a number for each pair of positions and is no mask of padding");
  }
  if (node.op == Op::exp && state(node.inputs[at]).stage < Stage::kCut) cut(node, node.inputs[at]);
  PackState next = state(node.inputs[at]);
  follow_scores(node, at, next);
  std::vector<ValueId> inputs;
  for (const ValueId v : node.inputs) {
    if (is(v, Kind::kScores)) {
      inputs.push_back(state(v).value);
      continue;
    }
    const int keys = own(v, axes.keys);
    const bool by_key =
        keys >= 0 && (is(v, Kind::kRows) ? state(v).axes.tokens == keys : !sizes_.is_one(v, keys));
    inputs.push_back(
        rows_of(node, v, {own(v, axes.batch), by_key ? keys : own(v, axes.tokens), -1, axes.inner}));
  }
  next.trail->push_back(rows_.emitted());
  next.value = copy(node, inputs)[0];
  next.axes = axes;
  state(node.outputs[0]) = next;
}

void PackRules::mask_scores(const Node& node, size_t at, const PackMask& meaning, size_t scores,
                            PackState next) {
  double below = 0;  // what hidden keys are below shown ones after this
  bool fits = true;
  if (node.op == Op::where && at == 0) {
    const bool straight = meaning.shown > meaning.hidden;
    const auto other = number_of(node.inputs[straight ? 2 : 1]);
    fits = scores == (straight ? 1u : 2u) && other.has_value();
    below = fits ? *other : 0;
    if (next.stage == Stage::kWeights) {
      require(node, fits && *other == 0, "hidden keys get a weight other than zero");
      require(node, !meaning.causal || next.causal, kLaterKeys);
      state(node.outputs[0]) = next;
      return;
    }
  } else if (node.op == Op::add || (node.op == Op::sub && at == 1)) {
    below = node.op == Op::add ? meaning.hidden - meaning.shown : meaning.shown - meaning.hidden;
    fits = below < 0 && next.stage != Stage::kWeights;
    if (meaning.shown != 0 && fits) {
      next.trail->push_back(rows_.emitted());
      next.value = rows_.emit("mask", node.op,
                              {next.value, rows_.number(rows_.type(next.value).dtype, meaning.shown)});
    }
  } else if (node.op == Op::mul && meaning.shown == 1 && meaning.hidden == 0 &&
             (next.stage == Stage::kOpen || next.stage == Stage::kWeights)) {
    // It hides no key by itself, but changes hidden ones only.
    if (next.stage == Stage::kWeights) require(node, !meaning.causal || next.causal, kLaterKeys);
    next.wants_causal = next.wants_causal || meaning.causal;
    state(node.outputs[0]) = next;
    return;
  } else {
    fits = false;
  }
  require(node, fits, "the mask meets the scores in an unknown way");
  for (size_t p = 0; p < PackSizes::kProbes; ++p)
    require(node, sizes_.of(node.inputs[scores], p) == sizes_.of(node.outputs[0], p),
            "the mask makes scores larger");
  const bool is_first = next.stage == Stage::kOpen && !next.causal;
  next.level = is_first ? below : std::max(next.level, below);
  next.causal = next.causal || meaning.causal;
  if (meaning.padding && next.stage == Stage::kOpen) next.stage = Stage::kMasked;
  state(node.outputs[0]) = next;
}

// What may happen to scores from stage to stage.
void PackRules::follow_scores(const Node& node, size_t scores, PackState& next) {
  const auto other = [&] { return node.inputs[1 - scores]; };
  const auto is_positive = [&](ValueId v) {
    const auto n = number_of(v);
    return n && *n > 0 && std::isfinite(*n);
  };
  const bool scales = (node.op == Op::mul && is_positive(other())) ||
                      (node.op == Op::div && scores == 0 && is_positive(other()));
  const bool adds = node.op == Op::add || (node.op == Op::sub && scores == 0);
  const bool by_row = node.inputs.size() == 2 && !is(other(), Kind::kScores);
  switch (next.stage) {
    case Stage::kOpen:
      if (next.causal) break;  // as masked ones
      return;
    case Stage::kMasked:
      break;
    case Stage::kCut:
      if (node.op == Op::exp) {
        next.stage = Stage::kWeights;
        return;
      }
      require(node, node.op == Op::cast || scales || (adds && by_row),
              "it stands between the largest score and the exponential of a softmax");
      return;
    case Stage::kWeights: {
      if (node.op == Op::is_nan) {
        next.is_nan = true;
        return;
      }
      const bool replaces = node.op == Op::where && scores == 2 && is(node.inputs[0], Kind::kScores) &&
                            state(node.inputs[0]).is_nan && number_of(node.inputs[1]) == 0.0;
      const bool shares = by_row && (node.op == Op::mul || (node.op == Op::div && scores == 0));
      require(node, !next.is_nan && (node.op == Op::cast || replaces || shares),
              "it would give hidden keys a weight");
      return;
    }
  }
  if (node.op == Op::cast || (adds && by_row)) return;
  if (scales) {
    const double by = *number_of(other());
    next.level = node.op == Op::mul ? next.level * by : next.level / by;
    return;
  }
  const auto bound = node.inputs.size() == 2 ? number_of(other()) : std::nullopt;
  require(node, (node.op == Op::max || node.op == Op::min) && bound.has_value(),
          "it stands between the mask and the softmax of attention");
  if (node.op == Op::max) next.level = std::max(next.level, *bound);
}

}  // namespace thrice::transform
