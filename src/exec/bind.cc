#include "exec/bind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thrice/status.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/arena.h"
#include "base/hash.h"
#include "family/in_place.h"

namespace thrice::exec {

using artifact::StepKind;
using ir::ValueId;

namespace {

int64_t bytes_of(DType dtype, const std::vector<int64_t>& shape) {
  return ir::num_elements(shape) * static_cast<int64_t>(dtype_bytes(dtype));
}

int64_t aligned(int64_t bytes) {
  constexpr int64_t kAlignment = backend::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// One piece of memory; aliases share it.
struct Piece {
  Storage storage = Storage::kArena;
  ValueId value = ir::kNoValue;
  int64_t bytes = 0;
  int first = 0, last = 0;  // moments
  size_t step = 0;
};

class Binder {
 public:
  Binder(const Executable& code, size_t segment, RunFacts& facts, const std::vector<uint8_t>& escapes)
      : code_(code), segment_(code.segments[segment]), number_(segment), facts_(facts), escapes_(escapes) {}

  BoundSegment bind() {
    for (size_t s = 0; s < segment_.steps.size(); ++s) {
      step_ = s;
      BoundStep step{out_.launches.size(), 0};
      const StepCode& code = segment_.steps[s];
      if (code.step->kind == StepKind::kAlias) alias(code);
      if (code.step->kind == StepKind::kRegion) region(code);
      step.num_launches = out_.launches.size() - step.first_launch;
      now_ += std::max<int>(1, static_cast<int>(step.num_launches));
      out_.steps.push_back(step);
    }
    out_.num_moments = now_;
    place();
    return std::move(out_);
  }

 private:
  // Piece that holds v, made on first sight for values from outside.
  int piece_of(ValueId v) {
    const auto it = piece_.find(v);
    if (it != piece_.end()) return it->second;
    const Storage storage = code_.packed_only[static_cast<size_t>(v)] ? Storage::kPacked : Storage::kOutside;
    return add(v, {storage, v, bytes_of(facts_.fact(v).type.dtype, facts_.shape(v))});
  }
  int add(ValueId v, Piece piece) {
    piece.first = piece.last = now_;
    piece.step = step_;
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
  void touch(int piece, int moment) {
    Piece& p = pieces_[static_cast<size_t>(piece)];
    p.last = std::max(p.last, moment);
  }

  void alias(const StepCode& code) {
    const ir::Node& node = code_.graph->nodes[static_cast<size_t>(code.step->nodes[0])];
    const int piece = piece_of(node.inputs[0]);
    touch(piece, now_);
    made(node.outputs[0], piece, facts_.fact(node.outputs[0]).type.dtype, facts_.shape(node.outputs[0]));
  }

  // The bucket of this run's length.
  const KernelCode& kernel_of(const StepCode& code) const {
    const std::vector<artifact::Bucket>& buckets = code.step->buckets;
    size_t k = buckets.size();
    if (const auto it = facts_.bindings().find(code_.plan->bucket_symbol); it != facts_.bindings().end())
      while (k > 0 && it->second <= buckets[k - 1].up_to) --k;
    return code.kernels[k];
  }

  void region(const StepCode& code) {
    const KernelCode& kernel = kernel_of(code);
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
    artifact::LaunchPlan plan = kernel.family->launch(workload, *kernel.schedule, inputs);

    std::vector<int> arguments;
    for (size_t i = 0; i < workload.inputs.size(); ++i)
      if (!ir::is_shape_input(workload, i)) arguments.push_back(piece_of(workload.inputs[i]));
    const size_t first_made = arguments.size();
    for (size_t o = 0; o < workload.outputs.size(); ++o) {
      const ir::Type& type = bound[static_cast<size_t>(workload.graph.outputs[o])].type;
      const std::vector<int64_t> shape = ir::static_shape(type.shape);
      const ValueId v = workload.outputs[o];
      if (shape != facts_.shape(v))
        throw Error(Code::kInternal,
                    fmt::format("region '{}' makes {} where the model expects {}", code.name,
                                ir::shape_str(type.shape), ir::shape_str(facts_.fact(v).type.shape)));
      arguments.push_back(add(v, {Storage::kArena, v, bytes_of(type.dtype, shape)}));
      made(v, arguments.back(), type.dtype, shape);
    }
    const std::vector<int> fills = add_temporaries(kernel, plan, arguments);
    add_launches(code, kernel, plan, fills, arguments, first_made);
    add_shares(code, kernel, arguments, first_made);
  }

  // Which results could lie where an operand lies: of one size, and the operand is no other argument too.
  // Whether it is read later is known only when all steps are.
  void add_shares(const StepCode& code, const KernelCode& kernel, const std::vector<int>& arguments,
                  size_t first_made) {
    for (const family::Share& share : family::shares_of(*kernel.family, code.workload, *kernel.schedule)) {
      size_t argument = 0;
      for (size_t i = 0; i < share.input; ++i) argument += !ir::is_shape_input(code.workload, i);
      const int from = arguments[argument], to = arguments[first_made + share.output];
      if (pieces_[static_cast<size_t>(from)].bytes == pieces_[static_cast<size_t>(to)].bytes &&
          std::count(arguments.begin(), arguments.end(), from) == 1)
        shares_.emplace_back(from, to);
    }
  }
  // For each piece the one in whose storage it lies, and how long storage lives.
  struct Sharing {
    std::vector<size_t> owner;
    std::vector<int> last;
  };
  // Storage goes on where the operand's last launch is the first that touches the result.
  Sharing share(bool in_place) const {
    Sharing all;
    all.owner.resize(pieces_.size());
    std::iota(all.owner.begin(), all.owner.end(), size_t{0});
    for (const Piece& piece : pieces_) all.last.push_back(piece.last);
    if (!in_place) return all;
    std::vector<uint8_t> goes_on(pieces_.size(), 0);
    for (const auto& [a, b] : shares_) {  // in the order of steps: an operand's owner is settled
      const auto from = static_cast<size_t>(a), to = static_cast<size_t>(b);
      const Piece& operand = pieces_[from];
      const Piece& result = pieces_[to];
      if (operand.storage != Storage::kArena || result.storage != Storage::kArena || all.owner[to] != to ||
          goes_on[from] || operand.last != result.first)
        continue;
      goes_on[from] = 1;
      all.owner[to] = all.owner[from];
      all.last[all.owner[from]] = result.last;
    }
    return all;
  }

  // Scratch. Steps, segments and buckets whose kernels make the same of the same weights share what is kept,
  // and the kernel runs for the first of them only. Returns which kept buffer each launch of the plan fills;
  // -1: none.
  std::vector<int> add_temporaries(const KernelCode& kernel, artifact::LaunchPlan& plan,
                                   std::vector<int>& arguments) {
    const size_t first = arguments.size();
    for (size_t t = 0; t < plan.temporary_bytes.size(); ++t) {
      const bool kept = t < plan.temporary_kept.size() && plan.temporary_kept[t];
      arguments.push_back(kept ? -1
                               : add(ir::kNoValue, {Storage::kArena, ir::kNoValue, plan.temporary_bytes[t]}));
    }
    const auto keep = [&](size_t t) {  // in the newest kept buffer
      const int64_t bytes = plan.temporary_bytes[t];
      const int piece = add(ir::kNoValue, {Storage::kKept, ir::kNoValue, bytes});
      BoundKept& kept = out_.kept.back();
      kept_places_[piece] = {out_.kept.size() - 1, kept.bytes};
      kept.bytes += aligned(bytes);
      return piece;
    };
    std::vector<int> fills;
    std::vector<artifact::Launch> launches;
    for (artifact::Launch& launch : plan.launches) {
      int fill = -1;
      if (launch.once && !kernel.uses.empty()) {
        const family::KernelUse& use = kernel.uses[static_cast<size_t>(launch.kernel)];
        std::vector<size_t> made;  // temporaries
        std::string key =
            fmt::format("{} {} {}", fmt::join(launch.grid, ","), fmt::join(launch.extents, ","), use.body);
        for (size_t a = 0; a < arguments.size(); ++a) {
          if (!use.touches[a]) continue;
          if (arguments[a] < 0)
            made.push_back(a - first);
          else if (const auto it = kept_places_.find(arguments[a]); it != kept_places_.end())
            key += fmt::format(" ({} at {})", out_.kept[it->second.buffer].key, it->second.offset);
          else
            key += fmt::format(" {}", pieces_[static_cast<size_t>(arguments[a])].value);
        }
        for (size_t t : made) key += fmt::format(" {}", plan.temporary_bytes[t]);
        key = hash_hex(key);
        const auto [it, is_new] = kept_.try_emplace(key);
        if (is_new) {
          fill = static_cast<int>(out_.kept.size());
          out_.kept.push_back({key, 0, {}});
        }
        for (size_t m = 0; m < made.size(); ++m) {
          if (is_new) it->second.push_back(keep(made[m]));
          arguments[first + made[m]] = it->second[m];
        }
        if (!is_new) continue;
      }
      fills.push_back(fill);
      launches.push_back(std::move(launch));
    }
    plan.launches = std::move(launches);
    if (std::find(arguments.begin() + static_cast<std::ptrdiff_t>(first), arguments.end(), -1) ==
        arguments.end())
      return fills;
    // What no single kernel is known to make belongs to this step and its launches alone.
    const int rest = static_cast<int>(out_.kept.size());
    out_.kept.push_back({fmt::format("{}:{} {}", number_, step_, kernel.schedule->str()), 0, {}});
    for (size_t a = first; a < arguments.size(); ++a)
      if (arguments[a] < 0) arguments[a] = keep(a - first);
    for (size_t l = 0; l < fills.size(); ++l)
      if (plan.launches[l].once && fills[l] < 0) fills[l] = rest;
    return fills;
  }

  void add_launches(const StepCode& code, const KernelCode& kernel, artifact::LaunchPlan& plan,
                    const std::vector<int>& fills, const std::vector<int>& arguments, size_t first_made) {
    constexpr size_t kInts = backend::kAlignment / sizeof(int32_t);
    std::vector<int> firsts(arguments.size(), -1);
    int moment = now_;
    for (size_t l = 0; l < plan.launches.size(); ++l) {
      artifact::Launch& launch = plan.launches[l];
      if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) continue;
      if (fills[l] >= 0) out_.kept[static_cast<size_t>(fills[l])].once.push_back(out_.once.size());
      BoundLaunch& b = (launch.once ? out_.once : out_.launches).emplace_back();
      b.program = kernel.program;
      b.extents_offset = static_cast<int64_t>(out_.extents.size() * sizeof(int32_t));
      out_.extents.insert(out_.extents.end(), launch.extents.begin(), launch.extents.end());
      out_.extents.resize((out_.extents.size() + kInts) / kInts *
                          kInts);  // at least one integer, next launch aligned
      std::vector<int>& pieces = (launch.once ? once_pieces_ : launch_pieces_).emplace_back(arguments);
      for (size_t a = 0; a < arguments.size(); ++a) {
        if (!kernel.uses.empty() && !kernel.uses[static_cast<size_t>(launch.kernel)].touches[a]) {
          pieces[a] = -1;
        } else if (!launch.once) {
          if (firsts[a] < 0) firsts[a] = moment;
          touch(arguments[a], moment);
        }
      }
      moment += !launch.once;
      b.launch = std::move(launch);
    }
    // Results stay to the step's end, for observers.
    for (size_t a = first_made; a < arguments.size(); ++a) {
      if (firsts[a] >= 0) pieces_[static_cast<size_t>(arguments[a])].first = firsts[a];
      if (a < first_made + code.workload.outputs.size()) touch(arguments[a], std::max(now_, moment - 1));
    }
  }

  // `interval_of`: by piece; -1: not in the arena, or in another's storage.
  analysis::ArenaPlan arena_of(const Sharing& sharing, std::vector<int>& interval_of) const {
    std::vector<analysis::Interval> intervals;
    interval_of.assign(pieces_.size(), -1);
    for (size_t p = 0; p < pieces_.size(); ++p) {
      if (pieces_[p].storage != Storage::kArena || sharing.owner[p] != p) continue;
      interval_of[p] = static_cast<int>(intervals.size());
      intervals.push_back({pieces_[p].bytes, pieces_[p].first, sharing.last[p]});
    }
    return analysis::plan_arena(intervals, backend::kAlignment);
  }

  void place() {
    std::vector<int> interval_of;
    Sharing sharing = share(true);
    analysis::ArenaPlan arena = arena_of(sharing, interval_of);
    // What lives longer as one may leave a gap that two would not.
    if (!shares_.empty() && arena.bytes > arena.lower_bound) {
      std::vector<int> others;
      Sharing none = share(false);
      analysis::ArenaPlan apart = arena_of(none, others);
      if (apart.bytes < arena.bytes) {
        sharing = std::move(none);
        arena = std::move(apart);
        interval_of = std::move(others);
      }
    }
    out_.arena_bytes = arena.bytes;
    out_.arena_lower_bound = arena.lower_bound;
    std::vector<BoundArgument> where(pieces_.size());
    for (size_t p = 0; p < pieces_.size(); ++p) {
      where[p] = {pieces_[p].storage, pieces_[p].value, 0, 0, pieces_[p].bytes};
      if (interval_of[p] >= 0) {
        where[p].offset = arena.offsets[static_cast<size_t>(interval_of[p])];
        out_.pieces.push_back({pieces_[p].step, pieces_[p].value == ir::kNoValue, pieces_[p].bytes,
                               where[p].offset, pieces_[p].first, sharing.last[p]});
      }
      if (sharing.owner[p] != p) where[p].offset = where[sharing.owner[p]].offset;  // made earlier
      if (pieces_[p].storage == Storage::kCarried) out_.carried.push_back(where[p]);
      if (pieces_[p].storage == Storage::kKept) {
        const KeptPlace& place = kept_places_.at(static_cast<int>(p));
        where[p].kept = place.buffer;
        where[p].offset = place.offset;
      }
    }
    const BoundArgument unused{Storage::kUnused, ir::kNoValue, 0, 0, 0};
    const auto set = [&](BoundLaunch& launch, const std::vector<int>& pieces) {
      for (int p : pieces) launch.arguments.push_back(p < 0 ? unused : where[static_cast<size_t>(p)]);
    };
    for (size_t l = 0; l < out_.launches.size(); ++l) set(out_.launches[l], launch_pieces_[l]);
    for (size_t l = 0; l < out_.once.size(); ++l) set(out_.once[l], once_pieces_[l]);
    for (size_t r = 0; r < out_.results.size(); ++r)
      out_.results[r].where = where[static_cast<size_t>(result_piece_[r])];
  }

  const Executable& code_;
  const SegmentCode& segment_;
  size_t number_;  // of the segment
  RunFacts& facts_;
  const std::vector<uint8_t>& escapes_;
  BoundSegment out_;
  std::vector<Piece> pieces_;
  std::map<ValueId, int> piece_;
  std::vector<std::vector<int>> launch_pieces_, once_pieces_;
  std::map<std::string, std::vector<int>> kept_;  // what a kernel does to which weights -> what it makes
  struct KeptPlace {
    size_t buffer = 0;
    int64_t offset = 0;
  };
  std::map<int, KeptPlace> kept_places_;  // of pieces
  std::vector<int> result_piece_;
  std::vector<std::pair<int, int>> shares_;  // operand and result, in the order of steps
  size_t step_ = 0;
  int now_ = 0;  // the moment at which the present step begins
};

}  // namespace

BoundSegment bind_segment(const Executable& code, size_t segment, RunFacts& facts,
                          const std::vector<uint8_t>& escapes) {
  return Binder(code, segment, facts, escapes).bind();
}

}  // namespace thrice::exec
