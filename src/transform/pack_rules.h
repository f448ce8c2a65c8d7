// The rules of pack_tokens, one operator at a time.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transform/pack_mask.h"
#include "transform/pack_rows.h"
#include "transform/pack_tokens.h"

namespace thrice::transform {

// What a value of the padded model has become.
struct PackState {
  enum class Kind {
    kPadded,  // itself, exactly
    kRows,    // rows without padding
    kScores,  // of rows by rows
    kPicked   // itself, for the sequences whose picked position is no padding
  };
  enum class Stage { kOpen, kMasked, kCut, kWeights };  // of scores: cut = -Inf at keys of others
  Kind kind = Kind::kPadded;
  PackAxes axes;
  ir::ValueId value = ir::kNoValue;  // in the packed graph
  std::optional<double> fill;        // of rows: what the padded model has at padded positions
  Stage stage = Stage::kOpen;
  double level = 0;  // of masked scores: what hidden ones are below shown ones
  bool causal = false;
  bool wants_causal = false;                   // later keys were changed: a mask must hide them yet
  bool is_nan = false;                         // of weights: whether they are NaN
  std::shared_ptr<std::vector<size_t>> trail;  // nodes of this attention so far
};

class PackRules {
 public:
  PackRules(ir::Graph& graph, const ir::Graph& model, ir::ValueId mask, std::vector<ir::Node>& nodes);
  // Throws kUnsupported naming the node.
  void apply(const ir::Node& node);
  PackedOutput finish(ir::ValueId output);
  const std::vector<int64_t>& picks() const { return picks_; }
  bool has_packed() const { return has_packed_; }

 private:
  using Kind = PackState::Kind;
  using Stage = PackState::Stage;
  PackState& state(ir::ValueId v) { return states_[static_cast<size_t>(v)]; }
  const PackState& state(ir::ValueId v) const { return states_[static_cast<size_t>(v)]; }
  bool is(ir::ValueId v, Kind kind) const { return v != ir::kNoValue && state(v).kind == kind; }
  int rank(ir::ValueId v) const { return static_cast<int>(sizes_.of(v, 0).size()); }
  std::optional<double> number_of(ir::ValueId v) const;
  [[noreturn]] void refuse(const ir::Node& node, const std::string& why) const;
  void require(const ir::Node& node, bool condition, const std::string& why) const;

  bool stays_padded(const ir::Node& node) const;
  void keep(const ir::Node& node, Kind kind = Kind::kPadded, const PackAxes& axes = {});
  void packed(const ir::Node& node);
  std::vector<ir::ValueId> copy(const ir::Node& node, std::vector<ir::ValueId> inputs);
  void set_rows(const ir::Node& node, const std::vector<ir::ValueId>& results, const PackAxes& axes);
  // The operand at the rows of `axes`, which are axes of its own; those below zero it does not have.
  ir::ValueId rows_of(const ir::Node& node, ir::ValueId v, const PackAxes& axes);
  void shape_of(const ir::Node& node);

  std::optional<PackMask> meaning_of(ir::ValueId value, const PackAxes& axes);
  void elementwise(const ir::Node& node);
  bool hides_rows(const ir::Node& node, const PackAxes& axes);
  void scores(const ir::Node& node, const PackAxes& axes);
  void mask_scores(const ir::Node& node, size_t at, const PackMask& meaning, size_t scores, PackState next);
  void follow_scores(const ir::Node& node, size_t scores, PackState& next);
  void cut(const ir::Node& node, ir::ValueId v);
  void view(const ir::Node& node);
  void gather(const ir::Node& node);
  void pick(const ir::Node& node);
  void reduce(const ir::Node& node);
  void product(const ir::Node& node);
  void picked(const ir::Node& node);
  // Where the axes of operand `at` are in the result; nullopt where the operator takes them apart.
  std::optional<PackAxes> axes_after(const ir::Node& node, size_t at, const PackAxes& axes) const;

  ir::Graph& graph_;
  const ir::Graph& model_;
  const ir::ValueId mask_;
  PackSizes sizes_;
  PackRows rows_;
  std::vector<ir::Node>& nodes_;
  std::vector<PackState> states_;
  std::vector<uint8_t> of_mask_;  // made of constants, extents and the mask alone
  std::map<std::pair<ir::ValueId, std::pair<int, int>>, ir::ValueId> rows_made_;
  struct KnownMask {
    ir::ValueId value;
    PackAxes axes;
    std::optional<PackMask> meaning;
  };
  std::vector<KnownMask> masks_;
  std::vector<int64_t> picks_;
  bool has_packed_ = false;
};

}  // namespace thrice::transform
