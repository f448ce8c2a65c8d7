// What a region of reductions over rows looks like: which axes of each value make the row number and which
// run along the row.
#pragma once
#include <string>
#include <vector>

#include "family/emitter.h"

namespace thrice::family {

// Axes of a value: those whose coordinates follow from the row number, and those that run along the row.
struct RowAxes {
  std::vector<size_t> outer, inner;
  size_t cut = 0;  // inner[cut..] are joined to one loop; those before are loops of their own
  // The value is rows after rows in memory, but no axis ends where a row does (a group of channels): all axes
  // are outer, and coordinates come from row * columns + column.
  bool flat = false;
  ir::Dim columns;
};

struct Reduction {
  ir::NodeId node = 0;
  ir::ValueId input = 0, result = 0;
  RowAxes axes;
};

struct RowOutput {
  size_t output = 0;
  RowAxes axes;  // inner is empty for one element a row
};

struct RowForm {
  std::vector<Reduction> reductions;  // topological
  std::vector<RowOutput> outputs;
  ir::Dim rows;
  int64_t row_count(const Facts& facts) const;
  int64_t column_count(const Facts& facts) const;  // of the first reduction
};

// Throws NotMatched with a sentence.
RowForm analyse_rows(const ProgramDraft& draft);

bool is_reduction(const ir::Node& node);
std::set<ir::NodeId> reduction_nodes(const ir::Graph& graph);

// Coordinates of `value` for a row number; inner axes are left at -1 for the caller.
Coords row_coords(Emitter& e, ir::ValueId value, const RowAxes& axes, Index row);
// Makes the reduction's result readable as `text` at the elements of this row; other elements throw
// NotMatched.
// Coordinates of a flat value.
Coords flat_coords(Emitter& e, ir::ValueId value, const RowAxes& axes, Index row, Index column,
                   Index columns);
void bind_reduction(Emitter& e, const Reduction& reduction, Index row, const std::string& text);
Index row_variable(Emitter& e, const RowForm& form, const std::string& name);

}  // namespace thrice::family
