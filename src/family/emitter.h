// Writes one kernel: values of the workload as expressions at coordinates, everything inlined, common parts
// once.
//
// Use, in a family:
//   ProgramDraft draft(workload);
//   Emitter e(draft, "map0");
//   Index i = e.global_thread();                        // or e.loop(...)
//   e.open("if (" + e.text(i) + " < " + e.text(n) + ")");
//   Coords c = e.split(i, y);                           // coordinates of value y
//   e.store(output, c, e.value(y, c));
//   e.close();
//   draft.kernels.push_back(e.finish(geometry));
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "family/index.h"
#include "family/program.h"

namespace thrice::family {

// Thrown while a draft is made when the workload does not have the form that the family assumed; match()
// turns it into a refusal.
struct NotMatched {
  std::string reason;
};

class Emitter {
 public:
  Emitter(ProgramDraft& draft, std::string symbol);
  Emitter(const Emitter&) = delete;

  IndexTable& index() { return index_; }
  const ProgramDraft& draft() const { return draft_; }
  const ir::Graph& graph() const { return draft_.graph(); }

  // --- integers -------------------------------------------------------------------------------------------
  Index constant(int64_t v) { return index_.constant(v); }
  Index dim(ir::ValueId value, int axis);      // extent: literal when constant
  std::vector<Index> dims(ir::ValueId value);  // all of them
  Index elements(ir::ValueId value);           // product of all extents
  Index product(const std::vector<Index>& factors);
  Coords split(Index flat, ir::ValueId value) { return index_.split(flat, dims(value)); }
  // Identifier or literal that holds the integer at this point of the text (writes declarations it needs).
  std::string text(Index i);
  // A new variable holding `expression` (C text of type int); one per scope for equal texts.
  Index declare_int(const std::string& expression);

  // --- text -----------------------------------------------------------------------------------------------
  void line(const std::string& statement);  // one statement, semicolon included
  void open(const std::string& head);       // "for (...)": writes `head {` and begins a scope
  void close();
  // for (int <name> = begin; name < end; name += step) { ... }: opens the scope, returns the variable.
  // `bound` states 0 <= variable < bound, which lets divisions fold.
  Index open_loop(const std::string& begin, const std::string& end, const std::string& step,
                  std::optional<ir::Dim> bound = std::nullopt);
  std::string fresh(const std::string& stem);  // unused identifier: stem0, stem1, ...
  // A work-group-shared array at the head of the kernel; a constant number of elements. Returns its name.
  std::string local_array(const std::string& type, int64_t elements);
  // An argument of this kernel after the extents: a tensor map (CUDA only; artifact::Launch::maps, which the
  // kernel's geometry fills in the same order).
  void add_map(const std::string& name) { maps_ += ", TH_MAP " + name; }
  // File-scope text put before the kernel (functions, constant tables).
  void preamble(const std::string& text) { preamble_ += text; }

  // --- values ---------------------------------------------------------------------------------------------
  // Identifier or literal of the compute type (compute_type in scalar.h) of element `coords` of `value`.
  // coords has one entry an axis. Throws NotMatched for a producer that cannot be inlined (reduce, matmul,
  // ...) unless it was bound.
  std::string value(ir::ValueId value, const Coords& coords);
  // From now on elements of `value` come from `read`: accumulators, row scalars, staged tiles. Results are
  // not remembered across calls.
  using Read = std::function<std::string(const Coords&)>;
  void bind(ir::ValueId value, Read read);
  void unbind(ir::ValueId value);
  // Elements of `value` come from temporary `number`, or from output buffer `output` that an earlier kernel
  // wrote, row-major in the value's shape.
  void bind_temporary(ir::ValueId value, int number);
  void bind_output(ir::ValueId value, size_t output);
  // Element of a buffer argument, converted to the compute type.
  std::string load(const std::string& buffer, DType dtype, const std::string& offset);
  // Operand of the node at output coordinates `out` of rank-aligned broadcasting: coordinates inside it.
  Coords broadcast(ir::ValueId operand, const Coords& out, const std::vector<ir::Dim>& out_shape);
  // Stores one element of graph output `output` (position in graph.outputs); rounds to its dtype.
  void store(size_t output, const Coords& coords, const std::string& element);
  void store_temporary(int number, const std::string& offset, const std::string& element);
  // A named local of the value's compute type holding `expression`.
  std::string declare(DType dtype, const std::string& expression);

  // --- lanes ----------------------------------------------------------------------------------------------
  // OpenCL only. Writes what `write` writes with every value as a vector of `lanes` elements: element t of it
  // is the value at lane + t. Operands that do not depend on `lane` are scalars; others must follow each
  // other in memory, and only element-wise float operators and views that move no lane may lie between.
  // False, with nothing written, where that is not so: then the caller writes it element by element.
  bool write_lanes(Index lane, int64_t lanes, const std::function<void()>& write);

  // --- packs ----------------------------------------------------------------------------------------------
  // CUDA only. `lanes` neighbours along the variable `lane` are loaded and stored at once: first load_packs
  // with what will be written, which loads them all, then use_packs with the same, element by element. What
  // is loaded stays in registers under its buffer and offset, so that a later load_packs of it loads nothing.
  struct Packs {
    Index lane;               // a variable that the passes declare
    int64_t lanes = 1;        // elements of a pack; `lane` begins at a multiple of it where `full` is empty
    int64_t places = 1;       // packs of one kind that are held at one time; the same for all passes
    std::string place = "0";  // which of them: a number or an unrolled loop's variable
    // Where packs may reach beyond a row: text that is true where all elements are inside, and the first and
    // the end of those that are. Empty: all always are.
    std::string full, first, end;
    Index even;  // then: an offset that is a multiple of `lanes` all the same
    // Filled by load_packs for use_packs.
    std::vector<std::string> loads, buffers, outs, stores;  // buffers: where each of loads comes from
    std::string element;
  };
  void load_packs(Packs& packs, const std::string& column, const std::function<void()>& write);
  // `guard`, where it is not empty, is asked before each element. Stores come last.
  void use_packs(Packs& packs, const std::string& column, const std::string& guard,
                 const std::function<void()>& write);

  // True where text written so far divides something that depends on `variable`: such loops do not vectorise.
  bool divides(Index variable) const;
  // The finished kernel: signature, extents at its head, body. `threads` > 0 states the work-group size,
  // `cluster` > 1 how many neighbouring blocks form a cluster (CUDA, sm_90 on; grids are multiples of it).
  // `alone`: one block has a multiprocessor's registers for itself (CUDA; setmaxnreg wants that said).
  KernelDraft finish(std::function<void(const Facts&, artifact::Launch&)> geometry, int64_t threads = 0,
                     int64_t cluster = 1, bool alone = false);

 private:
  struct Scope {
    std::map<std::string, std::string> names;  // what -> identifier
  };
  const std::string* find(const std::string& what) const;
  void remember(const std::string& what, const std::string& name) { scopes_.back().names[what] = name; }
  std::string make_value(ir::ValueId value, const Coords& coords);
  // Of a value of this dtype: the scalar, or the vector while lanes are written.
  std::string variable_type(DType dtype) const;
  // How far apart the offsets of neighbouring lanes are: 0 or 1; throws NotMatched elsewhere.
  int64_t lane_stride(Index offset) const;
  std::string load_lanes(const std::string& buffer, DType dtype, Index offset);
  std::string compute_lanes(const ir::Node& node, const std::vector<DType>& types,
                            const std::vector<std::string>& operands, DType result);
  bool packs_here(Index offset) const;
  std::string pack_method(const char* method, const std::string& buffer, Index offset,
                          const std::string& at) const;
  std::string load_pack(const std::string& buffer, DType dtype, Index offset);
  void store_pack(const std::string& buffer, DType dtype, Index offset, const std::string& element);
  // In packs, where arithmetic may take longer than memory: the operator in fewer instructions, or "".
  std::string quick_expression(const ir::Node& node, const std::vector<std::string>& operands,
                               const Coords& coords, DType result);
  void store_element(const std::string& buffer, DType dtype, const std::string& offset,
                     const std::string& element);
  std::string compute(const ir::Node& node, ir::ValueId result, const Coords& coords);
  std::string view(const ir::Node& node, ir::ValueId result, const Coords& coords);
  std::string concat(const ir::Node& node, ir::ValueId result, const Coords& coords);
  std::string pad(const ir::Node& node, ir::ValueId result, const Coords& coords);
  Coords reshape(ir::ValueId from, ir::ValueId to, const Coords& coords);
  Coords slice(const ir::Node& node, const Coords& coords);
  Coords gather_nd(const ir::Node& node, const Coords& coords);
  Index operand_int(const ir::Node& node, size_t operand, size_t element, const std::string& what,
                    const Source& source, bool literal);
  Index gather_index(ir::ValueId indices, const Coords& at, Index extent);
  std::string constant_element(ir::ValueId value, const Coords& coords);

  ProgramDraft& draft_;
  std::string symbol_;
  IndexTable index_;
  std::vector<Source> extents_;
  std::vector<std::string> extent_names_;
  std::map<int, std::string> extent_of_;  // Index id of an extent -> its identifier
  std::vector<Scope> scopes_;
  std::set<int> printed_;  // Index ids of operators written
  std::map<ir::ValueId, Read> bound_;
  std::string preamble_, head_, body_, maps_;
  int indent_ = 1;
  int64_t lanes_ = 0;  // 0: values are scalars
  Index lane_;
  std::set<std::string> vectors_;  // identifiers of vectors
  enum class PackPass { kNone, kLoad, kUse };
  PackPass pack_pass_ = PackPass::kNone;
  Packs* pack_ = nullptr;
  size_t pack_depth_ =
      0;  // scopes around what is written; deeper is conditional, and taken element by element
  size_t pack_next_load_ = 0, pack_next_store_ = 0;
  std::map<std::string, std::string> kept_packs_;
  std::map<std::string, int> counters_;
};

// Runs a family's drafting function: its NotMatched and kUnsupported become the refusal.
Refusal refuse_draft(const std::function<void()>& draft);

// Can every node be inlined by Emitter::value? nullopt = yes. Nodes listed in `except` are the family's own.
Refusal refuse_inlining(const Workload& workload, const std::set<ir::NodeId>& except = {});

}  // namespace thrice::family
