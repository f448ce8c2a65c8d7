// Launching a bound segment: cached by shape, replayed with the run's own outside buffers.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <span>
#include <utility>

#include "exec/run.h"

namespace thrice::exec {

using backend::BufferSpan;
using ir::ValueId;

// What a binding depends on: every symbol bound so far, and the values of shape operands that symbols do not
// express.
std::string Run::key(size_t segment) {
  std::string key;
  for (const auto& [symbol, value] : facts_.bindings()) key += fmt::format("{}={};", symbol, value);
  for (const StepCode& code : code_.segments[segment].steps) {
    if (code.step->kind != artifact::StepKind::kRegion) continue;
    for (size_t i = 0; i < code.workload.inputs.size(); ++i) {
      const ValueId v = code.workload.inputs[i];
      if (!ir::is_shape_input(code.workload, i) || graph_.value(v).constant || graph_.value(v).known)
        continue;
      // Resize takes its scales as floats: a shape input need not be an integer.
      const ir::Tensor& tensor = on_host(v);
      key += fmt::format("{}:", v);
      for (int64_t e = 0; e < tensor.size(); ++e) key += fmt::format("{},", tensor.as_double(e));
    }
  }
  return key;
}

namespace {

// Differs from run to run: buffers of the caller and of the pool.
bool is_exchanged(const BoundArgument& argument) {
  return argument.storage == Storage::kOutside || argument.storage == Storage::kCarried;
}

// What is recorded must not hold on to such buffers: they would lie idle until the next run of these shapes.
BufferSpan borrowed(BufferSpan span) {
  span.buffer = backend::BufferPtr(backend::BufferPtr(), span.buffer.get());
  return span;
}

}  // namespace

CachedSegment& Run::bound(size_t segment) {
  constexpr size_t kMaxBindings = 64;  // of one segment; a service with many lengths keeps the latest ones
  auto& cache = state_.cache[segment];
  std::string here = key(segment);
  const uint64_t now = ++state_.bindings_used;
  if (const auto known = cache.find(here); known != cache.end()) {
    known->second->last_used = now;
    return *known->second;
  }
  auto made = std::make_unique<CachedSegment>();
  made->last_used = now;
  made->bound = bind_segment(code_, segment, facts_, state_.lifetimes.escapes[segment]);
  state_.arena_lower_bound = std::max(state_.arena_lower_bound, made->bound.arena_lower_bound);
  make_room(static_cast<size_t>(made->bound.arena_bytes));
  const auto& ints = made->bound.extents;
  if (!ints.empty()) {
    const size_t bytes = ints.size() * sizeof(int32_t);
    made->parameters = {code_.device->allocate(bytes), 0, bytes};
    state_.stream->copy_to_device(made->parameters, std::as_bytes(std::span(ints)));
  }
  // Only what was bound whole is kept, and only that takes another's place.
  if (cache.size() >= kMaxBindings)
    cache.erase(std::min_element(cache.begin(), cache.end(), [](const auto& a, const auto& b) {
      return a.second->last_used < b.second->last_used;
    }));
  return *(cache[std::move(here)] = std::move(made));
}

// A larger arena has another address: recorded launches of all other shapes are made anew when they come
// again. Where there is no memory for it, nothing is bound any more, and the next run begins with none.
void Run::make_room(size_t arena_bytes) {
  if (arena_bytes <= (state_.arena ? state_.arena->bytes() : 0)) return;
  for (auto& segment : state_.cache)
    for (auto& [key, entry] : segment) {
      entry->launches.clear();
      entry->replay.reset();
    }
  state_.stream->synchronize();
  state_.arena.reset();
  try {
    state_.arena = code_.device->allocate(arena_bytes);
  } catch (...) {
    for (auto& segment : state_.cache) segment.clear();
    throw;
  }
}

void Run::launch_segment(size_t segment) {
  CachedSegment& cached = bound(segment);
  const BoundSegment& plan = cached.bound;
  std::map<ValueId, BufferSpan> carried;
  for (const BoundArgument& piece : plan.carried)
    carried[piece.value] = state_.pool->take(static_cast<size_t>(piece.bytes));
  const auto span_of = [&](const BoundArgument& a) -> BufferSpan {
    const size_t bytes = static_cast<size_t>(a.bytes);
    if (a.storage == Storage::kUnused || a.storage == Storage::kPacked) return {};
    if (a.storage == Storage::kKept) return {cached.kept[a.kept], static_cast<size_t>(a.offset), bytes};
    if (a.storage == Storage::kArena)
      return {bytes ? state_.arena : backend::BufferPtr(), static_cast<size_t>(a.offset), bytes};
    BufferSpan span = a.storage == Storage::kCarried ? carried.at(a.value) : on_device(a.value);
    span.bytes = bytes;
    return span;
  };

  const auto recorded_of = [&](const BoundLaunch& launch) {
    backend::RecordedLaunch recorded;
    recorded.program = launch.program;
    recorded.launch = launch.launch;
    for (const BoundArgument& argument : launch.arguments)
      recorded.buffers.push_back(is_exchanged(argument) ? borrowed(span_of(argument)) : span_of(argument));
    recorded.extents = cached.parameters;
    recorded.extents.offset += static_cast<size_t>(launch.extents_offset);
    recorded.extents.bytes = std::max<size_t>(launch.launch.extents.size(), 1) * sizeof(int32_t);
    return recorded;
  };
  if (cached.launches.empty()) {
    cached.kept.resize(plan.kept.size());
    for (size_t k = 0; k < plan.kept.size(); ++k) {
      const BoundKept& kept = plan.kept[k];
      cached.kept[k] = code_.kept->get(kept.key, [&] {
        cached.kept[k] = code_.device->allocate(std::max<size_t>(static_cast<size_t>(kept.bytes), 1));
        for (size_t o : kept.once) pack(plan.once[o], recorded_of(plan.once[o]));
        return cached.kept[k];
      });
    }
    std::vector<backend::RecordedLaunch> launches;  // kept once they are recorded
    cached.owners.clear();
    for (const BoundLaunch& launch : plan.launches) {
      launches.push_back(recorded_of(launch));
      auto& owners = cached.owners.emplace_back(launch.arguments.size());
      for (size_t a = 0; a < owners.size(); ++a)
        if (is_exchanged(launch.arguments[a])) owners[a] = span_of(launch.arguments[a]).buffer;
    }
    if (!launches.empty()) cached.replay = state_.stream->record(launches);
    cached.launches = std::move(launches);
  } else {
    for (size_t l = 0; l < plan.launches.size(); ++l)
      for (size_t a = 0; a < plan.launches[l].arguments.size(); ++a) {
        if (!is_exchanged(plan.launches[l].arguments[a])) continue;
        const BufferSpan span = span_of(plan.launches[l].arguments[a]);
        BufferSpan& last = cached.launches[l].buffers[a];
        std::weak_ptr<backend::Buffer>& owner = cached.owners[l][a];
        const bool is_same = !owner.owner_before(span.buffer) && !span.buffer.owner_before(owner);
        if (is_same && span.offset == last.offset) continue;
        cached.replay->set_buffer(l, a, borrowed(span));
        owner = span.buffer;
        last = borrowed(span);
      }
  }

  for (const BoundValue& result : plan.results) {
    if (!options_.observe && result.where.storage == Storage::kArena) continue;
    Operand& o = operand(result.value);
    o.dtype = result.dtype;
    o.shape = result.shape;
    o.device = span_of(result.where);
    o.host.reset();
  }
  if (options_.observe)
    launch_observed(segment, cached);
  else if (cached.replay)
    state_.stream->replay(*cached.replay);
}

// A weight that nothing else reads comes to the device for this launch alone, in memory that is freed again:
// beside all packed weights there is never more than one that is not packed.
void Run::pack(const BoundLaunch& launch, backend::RecordedLaunch recorded) {
  for (size_t a = 0; a < launch.arguments.size(); ++a) {
    if (launch.arguments[a].storage != Storage::kPacked) continue;
    const ir::Tensor& weight = *graph_.value(launch.arguments[a].value).constant;
    BufferSpan& span = recorded.buffers[a];
    span = {code_.device->allocate(std::max<size_t>(weight.bytes(), 1)), 0, weight.bytes()};
    if (weight.bytes() > 0) state_.stream->copy_to_device(span, {weight.data(), weight.bytes()});
  }
  state_.stream->launch(recorded);
  state_.stream->synchronize();
}

void Run::launch_observed(size_t segment, CachedSegment& cached) {
  for (size_t s = 0; s < cached.bound.steps.size(); ++s) {
    const BoundStep& step = cached.bound.steps[s];
    const auto before = state_.stream->record_event();
    for (size_t l = 0; l < step.num_launches; ++l)
      state_.stream->launch(cached.launches[step.first_launch + l]);
    const auto after = state_.stream->record_event();
    state_.stream->synchronize();
    observe(segment, s, step.num_launches ? after->microseconds_since(*before) : 0);
  }
}

}  // namespace thrice::exec
