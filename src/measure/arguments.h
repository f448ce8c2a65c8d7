// The buffers of one candidate: inputs, outputs and temporaries between guard zones. One thread at a time.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "backend/backend.h"
#include "family/in_place.h"
#include "ir/region.h"

namespace thrice::measure {

constexpr size_t kGuardBytes = 4096;  // before and after each buffer

// What a round puts where nothing has been computed. `poison`: outputs and temporaries. `guard`: the zones
// around every buffer; those of integer inputs always hold 0xFF, since an index that is read from there must
// not lead far away.
struct Fill {
  std::byte poison{0xFF}, guard{0xFF};
};
// Of round r. Poisons alternate, so that an integer that equals one is no alibi. Guards rotate between NaN
// and finite values of both signs (1e36 and -3e36 as f32): a maximum or a comparison hides a NaN, a minimum
// the large value.
Fill fill_of(size_t round);

class Arguments {
 public:
  // Allocates everything and uploads parameter blocks; `facts` of the inputs. `fenced`: buffers end at
  // unmapped memory instead of a guard zone, where the device offers it (Device::allocate_fenced); what is
  // left up to the fence is guarded. `shares`: outputs that lie where an input does; such inputs are consumed
  // by the launches. Errors: kOutOfMemory.
  Arguments(backend::Device& device, backend::Stream& stream, const backend::ProgramPtr& program,
            const ir::Workload& workload, const artifact::LaunchPlan& launches,
            const std::vector<ir::Fact>& facts, bool fenced = false,
            const std::vector<family::Share>& shares = {});

  // Uploads inputs (index-aligned with graph.inputs), poisons outputs and temporaries, and writes all guard
  // zones anew.
  void prepare(const std::vector<ir::Tensor>& inputs, const Fill& fill);
  // Other inputs into the same buffers; outputs and temporaries keep what earlier launches left in them.
  void exchange_inputs(const std::vector<ir::Tensor>& inputs);
  // Outputs in buffers at other addresses, poisoned, for `replay` (recorded from launches()) and launches().
  // Errors: kOutOfMemory.
  void move_outputs(backend::Replay& replay, const Fill& fill);
  const std::vector<backend::RecordedLaunch>& launches() const { return launches_; }
  // Those of a model's first run only, and those of every run.
  std::vector<backend::RecordedLaunch> launches(bool once) const;
  // Waits for the stream and downloads output o.
  ir::Tensor output(size_t o);
  // What the launches must not have done: written into a guard zone, or changed an input. Empty = nothing.
  std::string damage(const std::vector<ir::Tensor>& inputs);
  int64_t temporary_bytes() const { return temporary_bytes_; }

 private:
  struct Piece {
    enum Kind { kInput, kOutput, kTemporary } kind;
    size_t index;  // of the input, output or temporary
    DType dtype;
    std::vector<int64_t> shape;
    size_t bytes;
    backend::BufferPtr buffer;
    bool is_shared = false;  // an input that is consumed, or the output in its buffer
    backend::BufferSpan span() const { return {buffer, kGuardBytes, bytes}; }
    size_t all_bytes() const { return buffer->bytes(); }  // with the zones before and after
  };
  std::byte guard_of(const Piece& piece) const;
  void write(const Piece& piece, const std::byte* data);
  void poison(const Piece& piece);
  void guard(const Piece& piece);
  void add(Piece::Kind kind, size_t index, DType dtype, std::vector<int64_t> shape, size_t bytes);
  backend::BufferPtr allocate(size_t bytes);
  std::string name(const Piece& piece) const;

  backend::Device& device_;
  backend::Stream& stream_;
  bool fenced_;
  std::vector<Piece> pieces_;  // in argument order
  std::vector<backend::BufferPtr>
      left_;  // former outputs: a kernel that kept an address may still write there
  std::vector<backend::RecordedLaunch> launches_;
  int64_t temporary_bytes_ = 0;
  Fill fill_;                    // of the last prepare() or move_outputs()
  std::vector<std::byte> host_;  // what was read of a buffer
};

}  // namespace thrice::measure
