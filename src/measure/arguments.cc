#include "measure/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace thrice::measure {
namespace {

size_t round_up(size_t bytes) {
  return (bytes + backend::kAlignment - 1) / backend::kAlignment * backend::kAlignment;
}

}  // namespace

Fill fill_of(size_t round) {
  constexpr std::byte kPoisons[] = {std::byte{0xFF}, std::byte{0xA5}};
  constexpr std::byte kGuards[] = {std::byte{0xFF}, std::byte{0x7B}, std::byte{0xFB}};
  return {kPoisons[round % 2], kGuards[round % 3]};
}

Arguments::Arguments(backend::Device& device, backend::Stream& stream, const backend::ProgramPtr& program,
                     const ir::Workload& workload, const artifact::LaunchPlan& plan,
                     const std::vector<ir::Fact>& facts, bool fenced,
                     const std::vector<family::Share>& shares)
    : device_(device), stream_(stream), fenced_(fenced) {
  const ir::Graph& graph = workload.graph;
  const std::vector<ir::Fact> all = ir::bind(graph, facts);
  const auto add_value = [&](Piece::Kind kind, size_t index, ir::ValueId id) {
    const ir::Type& type = all[static_cast<size_t>(id)].type;
    std::vector<int64_t> shape = ir::static_shape(type.shape);
    const size_t bytes = static_cast<size_t>(ir::num_elements(shape)) * dtype_bytes(type.dtype);
    add(kind, index, type.dtype, std::move(shape), bytes);
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (!ir::is_shape_input(workload, i)) add_value(Piece::kInput, i, graph.inputs[i]);
  for (size_t o = 0; o < graph.outputs.size(); ++o) add_value(Piece::kOutput, o, graph.outputs[o]);
  for (size_t t = 0; t < plan.temporary_bytes.size(); ++t) {
    add(Piece::kTemporary, t, DType::kU8, {plan.temporary_bytes[t]},
        static_cast<size_t>(plan.temporary_bytes[t]));
    temporary_bytes_ += plan.temporary_bytes[t];
  }
  const auto piece_of = [&](Piece::Kind kind, size_t index) -> Piece& {
    return *std::find_if(pieces_.begin(), pieces_.end(),
                         [&](const Piece& p) { return p.kind == kind && p.index == index; });
  };
  for (const family::Share& share : shares) {
    Piece& input = piece_of(Piece::kInput, share.input);
    Piece& output = piece_of(Piece::kOutput, share.output);
    if (input.is_shared || output.is_shared || input.bytes != output.bytes) continue;
    input.is_shared = output.is_shared = true;
    output.buffer = input.buffer;
  }

  size_t block = 0;
  for (const artifact::Launch& launch : plan.launches)
    block += round_up(std::max<size_t>(launch.extents.size(), 1) * 4);
  std::vector<std::byte> integers(block);
  const backend::BufferPtr parameters = device.allocate(block);
  block = 0;
  for (const artifact::Launch& launch : plan.launches) {
    backend::RecordedLaunch& recorded = launches_.emplace_back();
    recorded.program = program;
    recorded.launch = launch;
    for (const Piece& piece : pieces_) recorded.buffers.push_back(piece.span());
    const size_t bytes = std::max<size_t>(launch.extents.size(), 1) * 4;
    recorded.extents = {parameters, block, bytes};
    if (!launch.extents.empty())
      std::memcpy(integers.data() + block, launch.extents.data(), launch.extents.size() * 4);
    block += round_up(bytes);
  }
  if (block) stream.copy_to_device({parameters, 0, block}, integers);
}

std::vector<backend::RecordedLaunch> Arguments::launches(bool once) const {
  std::vector<backend::RecordedLaunch> some;
  for (const backend::RecordedLaunch& launch : launches_)
    if (launch.launch.once == once) some.push_back(launch);
  return some;
}

void Arguments::add(Piece::Kind kind, size_t index, DType dtype, std::vector<int64_t> shape, size_t bytes) {
  pieces_.push_back({kind, index, dtype, std::move(shape), bytes, allocate(bytes)});
}

backend::BufferPtr Arguments::allocate(size_t bytes) {
  if (fenced_)
    if (backend::BufferPtr buffer = device_.allocate_fenced(kGuardBytes + bytes)) return buffer;
  return device_.allocate(bytes + 2 * kGuardBytes);
}

std::string Arguments::name(const Piece& piece) const {
  const char* kinds[] = {"input", "output", "temporary"};
  return fmt::format("{} {}", kinds[piece.kind], piece.index);
}

std::byte Arguments::guard_of(const Piece& piece) const {
  return piece.kind == Piece::kInput && !is_float(piece.dtype) ? std::byte{0xFF} : fill_.guard;
}

void Arguments::write(const Piece& piece, const std::byte* data) {
  guard(piece);
  stream_.copy_to_device(piece.span(), {data, piece.bytes});
}

void Arguments::poison(const Piece& piece) {
  guard(piece);
  stream_.fill(piece.span(), fill_.poison);
}

// By the device: no image of what is nothing but a repeated byte has to travel.
void Arguments::guard(const Piece& piece) {
  const size_t end = kGuardBytes + piece.bytes;
  stream_.fill({piece.buffer, 0, kGuardBytes}, guard_of(piece));
  stream_.fill({piece.buffer, end, piece.all_bytes() - end}, guard_of(piece));
}

void Arguments::prepare(const std::vector<ir::Tensor>& inputs, const Fill& fill) {
  fill_ = fill;
  for (const Piece& piece : pieces_)
    if (piece.kind == Piece::kInput)
      write(piece, inputs[piece.index].data());
    else if (!piece.is_shared)
      poison(piece);
}

void Arguments::exchange_inputs(const std::vector<ir::Tensor>& inputs) {
  for (const Piece& piece : pieces_)
    if (piece.kind == Piece::kInput) write(piece, inputs[piece.index].data());
}

void Arguments::move_outputs(backend::Replay& replay, const Fill& fill) {
  fill_.poison = fill.poison;
  for (size_t p = 0; p < pieces_.size(); ++p) {
    Piece& piece = pieces_[p];
    if (piece.kind != Piece::kOutput) continue;
    left_.push_back(piece.buffer);
    piece.buffer = allocate(piece.bytes);
    poison(piece);
    size_t replayed = 0;  // launches of a first run are no part of the replay
    for (backend::RecordedLaunch& launch : launches_) {
      launch.buffers[p] = piece.span();
      if (!launch.launch.once) replay.set_buffer(replayed++, p, piece.span());
    }
  }
}

ir::Tensor Arguments::output(size_t o) {
  const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                  [&](const Piece& p) { return p.kind == Piece::kOutput && p.index == o; });
  ir::Tensor tensor(piece->dtype, piece->shape);
  stream_.copy_to_host({tensor.mutable_data(), tensor.bytes()}, piece->span());
  return tensor;
}

std::string Arguments::damage(const std::vector<ir::Tensor>& inputs) {
  const auto read = [&](const Piece& piece, size_t begin, size_t end) {
    if (host_.size() < end - begin) host_.resize(end - begin);
    const std::span<std::byte> bytes(host_.data(), end - begin);
    stream_.copy_to_host(bytes, {piece.buffer, begin, end - begin});
    return bytes;
  };
  for (const Piece& piece : pieces_) {
    const auto whole = [&](size_t begin, size_t end) {
      const std::span<const std::byte> zone = read(piece, begin, end);
      return std::all_of(zone.begin(), zone.end(),
                         [guard = guard_of(piece)](std::byte b) { return b == guard; });
    };
    if (piece.kind == Piece::kOutput && piece.is_shared) continue;  // the operand's zones are its own
    const size_t end = kGuardBytes + piece.bytes;
    if (!whole(0, kGuardBytes)) return "wrote before the start of " + name(piece);
    if (!whole(end, piece.all_bytes())) return "wrote beyond the end of " + name(piece);
    if (piece.kind != Piece::kInput || piece.is_shared || !piece.bytes) continue;
    const std::span<const std::byte> now = read(piece, kGuardBytes, end);
    if (std::memcmp(now.data(), inputs[piece.index].data(), piece.bytes) != 0)
      return "changed " + name(piece);
  }
  return {};
}

}  // namespace thrice::measure
