// The buffers of one candidate: inputs, outputs and temporaries between guard zones.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "artifact/kernel.h"
#include "backend/backend.h"
#include "ir/region.h"

namespace thrice::measure {

constexpr size_t kGuardBytes = 4096;  // before and after each buffer

class Arguments {
 public:
  // Allocates everything and uploads parameter blocks; `facts` of the inputs. Errors: kOutOfMemory.
  Arguments(backend::Device& device, backend::Stream& stream, const backend::ProgramPtr& program,
            const ir::Workload& workload, const artifact::LaunchPlan& launches,
            const std::vector<ir::Fact>& facts);

  // Uploads inputs (index-aligned with graph.inputs), poisons outputs and temporaries with `poison`, and
  // writes all guard zones anew.
  void prepare(const std::vector<ir::Tensor>& inputs, std::byte poison);
  const std::vector<backend::RecordedLaunch>& launches() const { return launches_; }
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
    backend::BufferSpan span() const { return {buffer, kGuardBytes, bytes}; }
  };
  void write(const Piece& piece, const std::byte* data, std::byte fill);
  void add(Piece::Kind kind, size_t index, DType dtype, std::vector<int64_t> shape, size_t bytes);
  std::string name(const Piece& piece) const;

  backend::Device& device_;
  backend::Stream& stream_;
  std::vector<Piece> pieces_;  // in argument order
  std::vector<backend::RecordedLaunch> launches_;
  int64_t temporary_bytes_ = 0;
  std::vector<std::byte> host_;  // image of one buffer with its guards
};

}  // namespace thrice::measure
