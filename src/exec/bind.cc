#include "exec/bind.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <map>

#include "analysis/arena.h"

namespace thrice::exec {

using artifact::StepKind;
using ir::ValueId;

namespace {

int64_t bytes_of(DType dtype, const std::vector<int64_t>& shape) {
  return ir::num_elements(shape) * static_cast<int64_t>(dtype_bytes(dtype));
}

// One piece of memory; aliases share it.
struct Piece {
  Storage storage = Storage::kArena;
  ValueId value = ir::kNoValue;
  int64_t bytes = 0;
  int first = 0, last = 0;
};

class Binder {
 public:
  Binder(const Executable& code, size_t segment, RunFacts& facts, const std::vector<uint8_t>& escapes)
      : code_(code), segment_(code.segments[segment]), facts_(facts), escapes_(escapes) {}

  BoundSegment bind() {
    for (size_t s = 0; s < segment_.steps.size(); ++s) {
      now_ = static_cast<int>(s);
      BoundStep step{out_.launches.size(), 0};
      const StepCode& code = segment_.steps[s];
      if (code.step->kind == StepKind::kAlias) alias(code);
      if (code.step->kind == StepKind::kRegion) region(code);
      step.num_launches = out_.launches.size() - step.first_launch;
      out_.steps.push_back(step);
    }
    place();
    return std::move(out_);
  }

 private:
  // Piece that holds v, made on first sight for values from outside.
  int piece_of(ValueId v) {
    const auto it = piece_.find(v);
    if (it != piece_.end()) return it->second;
    return add(v, {Storage::kOutside, v, bytes_of(facts_.fact(v).type.dtype, facts_.shape(v)), now_, now_});
  }
  int add(ValueId v, Piece piece) {
    pieces_.push_back(piece);
    if (v != ir::kNoValue) piece_[v] = static_cast<int>(pieces_.size()) - 1;
    return static_cast<int>(pieces_.size()) - 1;
  }
  // A value that escapes drags the whole piece out of the arena.
  void made(ValueId v, int piece, DType dtype, const std::vector<int64_t>& shape) {
    piece_[v] = piece;
    Piece& p = pieces_[static_cast<size_t>(piece)];
    if (escapes_[static_cast<size_t>(v)] && p.storage == Storage::kArena) {
      p.storage = Storage::kCarried;
      p.value = v;
    }
    out_.results.push_back({v, dtype, shape, {}});
    result_piece_.push_back(piece);
  }
  void touch(int piece) { pieces_[static_cast<size_t>(piece)].last = now_; }

  void alias(const StepCode& code) {
    const ir::Node& node = code_.graph->nodes[static_cast<size_t>(code.step->nodes[0])];
    const int piece = piece_of(node.inputs[0]);
    touch(piece);
    made(node.outputs[0], piece, facts_.fact(node.outputs[0]).type.dtype, facts_.shape(node.outputs[0]));
  }

  void region(const StepCode& code) {
    const ir::Workload& workload = code.workload;
    std::vector<ir::Fact> inputs;
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      inputs.push_back(facts_.fact(workload.inputs[i]));
      if (!ir::is_shape_input(workload, i)) continue;
      if (!inputs.back().known)
        if (const auto ints = facts_.ints(workload.inputs[i]))
          inputs.back().known = std::vector<ir::Dim>(ints->begin(), ints->end());
    }
    const std::vector<ir::Fact> bound = ir::bind(workload.graph, inputs);
    artifact::LaunchPlan plan = code.family->launch(workload, code.step->schedule, inputs);

    std::vector<int> arguments;
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      if (ir::is_shape_input(workload, i)) continue;
      arguments.push_back(piece_of(workload.inputs[i]));
      touch(arguments.back());
    }
    for (size_t o = 0; o < workload.outputs.size(); ++o) {
      const ir::Type& type = bound[static_cast<size_t>(workload.graph.outputs[o])].type;
      const std::vector<int64_t> shape = ir::static_shape(type.shape);
      const ValueId v = workload.outputs[o];
      if (shape != facts_.shape(v))
        throw Error(Code::kInternal,
                    fmt::format("region '{}' makes {} where the model expects {}", code.name,
                                ir::shape_str(type.shape), ir::shape_str(facts_.fact(v).type.shape)));
      arguments.push_back(add(v, {Storage::kArena, v, bytes_of(type.dtype, shape), now_, now_}));
      made(v, arguments.back(), type.dtype, shape);
    }
    for (size_t t = 0; t < plan.temporary_bytes.size(); ++t) {
      const int64_t bytes = plan.temporary_bytes[t];
      const bool kept = t < plan.temporary_kept.size() && plan.temporary_kept[t];
      arguments.push_back(
          add(ir::kNoValue, {kept ? Storage::kKept : Storage::kArena, ir::kNoValue, bytes, now_, now_}));
      if (!kept) continue;
      kept_[arguments.back()] = static_cast<int64_t>(out_.kept_bytes.size());
      out_.kept_bytes.push_back(bytes);
    }

    constexpr size_t kInts = backend::kAlignment / sizeof(int32_t);
    for (artifact::Launch& launch : plan.launches) {
      if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) continue;
      BoundLaunch& b = (launch.once ? out_.once : out_.launches).emplace_back();
      b.program = code.program;
      b.extents_offset = static_cast<int64_t>(out_.extents.size() * sizeof(int32_t));
      out_.extents.insert(out_.extents.end(), launch.extents.begin(), launch.extents.end());
      out_.extents.resize((out_.extents.size() + kInts) / kInts *
                          kInts);  // at least one integer, next launch aligned
      (launch.once ? once_pieces_ : launch_pieces_).push_back(arguments);
      b.launch = std::move(launch);
    }
  }

  void place() {
    std::vector<analysis::Interval> intervals;
    std::vector<int> interval_of(pieces_.size(), -1);
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (pieces_[p].storage != Storage::kArena) continue;
      interval_of[p] = static_cast<int>(intervals.size());
      intervals.push_back({pieces_[p].bytes, pieces_[p].first, pieces_[p].last});
    }
    const analysis::ArenaPlan arena = analysis::plan_arena(intervals, backend::kAlignment);
    out_.arena_bytes = arena.bytes;
    out_.arena_lower_bound = arena.lower_bound;
    std::vector<BoundArgument> where(pieces_.size());
    for (size_t p = 0; p < pieces_.size(); ++p) {
      where[p] = {pieces_[p].storage, pieces_[p].value, 0, pieces_[p].bytes};
      if (interval_of[p] >= 0) where[p].offset = arena.offsets[static_cast<size_t>(interval_of[p])];
      if (pieces_[p].storage == Storage::kCarried) out_.carried.push_back(where[p]);
      if (pieces_[p].storage == Storage::kKept) where[p].offset = kept_.at(static_cast<int>(p));
    }
    for (size_t l = 0; l < out_.launches.size(); ++l)
      for (int p : launch_pieces_[l]) out_.launches[l].arguments.push_back(where[static_cast<size_t>(p)]);
    for (size_t l = 0; l < out_.once.size(); ++l)
      for (int p : once_pieces_[l]) out_.once[l].arguments.push_back(where[static_cast<size_t>(p)]);
    for (size_t r = 0; r < out_.results.size(); ++r)
      out_.results[r].where = where[static_cast<size_t>(result_piece_[r])];
  }

  const Executable& code_;
  const SegmentCode& segment_;
  RunFacts& facts_;
  const std::vector<uint8_t>& escapes_;
  BoundSegment out_;
  std::vector<Piece> pieces_;
  std::map<ValueId, int> piece_;
  std::vector<std::vector<int>> launch_pieces_, once_pieces_;
  std::map<int, int64_t> kept_;  // piece -> number of its kept buffer
  std::vector<int> result_piece_;
  int now_ = 0;
};

}  // namespace

BoundSegment bind_segment(const Executable& code, size_t segment, RunFacts& facts,
                          const std::vector<uint8_t>& escapes) {
  return Binder(code, segment, facts, escapes).bind();
}

}  // namespace thrice::exec
