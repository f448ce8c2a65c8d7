#include "exec/executor.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "exec/run.h"
#include "ir/evaluate.h"

namespace thrice::exec {

using ir::ValueId;

Operand Operand::from_host(ir::Tensor tensor) {
  Operand operand;
  operand.dtype = tensor.dtype();
  operand.shape = tensor.shape();
  operand.host = std::move(tensor);
  return operand;
}

size_t Operand::bytes() const { return static_cast<size_t>(ir::num_elements(shape)) * dtype_bytes(dtype); }

Executor::Executor(std::shared_ptr<const Executable> code, void* native_stream)
    : state_(std::make_unique<State>()) {
  state_->stream = code->device->make_stream(native_stream);
  state_->pool = std::make_shared<BufferPool>(code->device);
  state_->lifetimes = find_lifetimes(*code);
  state_->cache.resize(code->segments.size());
  for (const auto& [place, body] : code->bodies) {
    // Bodies run on the same stream and pool, so that their results need no copy and no synchronization.
    auto executor = std::unique_ptr<Executor>(new Executor(body, native_stream));
    executor->state_->stream = state_->stream;
    executor->state_->pool = state_->pool;
    state_->bodies[place] = std::move(executor);
  }
  state_->code = std::move(code);
}

Executor::~Executor() = default;

std::vector<Operand> Executor::run(const std::vector<Operand>& inputs, const RunOptions& options) {
  return Run(*state_, options).execute(inputs);
}

ir::Tensor Executor::to_host(const Operand& operand) {
  if (operand.host) return *operand.host;
  ir::Tensor tensor(operand.dtype, operand.shape);
  if (operand.bytes() > 0)
    state_->stream->copy_to_host({tensor.mutable_data(), operand.bytes()}, operand.device);
  return tensor;
}

backend::BufferSpan Executor::copy_to_device(const Operand& operand) {
  const backend::BufferSpan span = state_->pool->take(operand.bytes());
  if (operand.bytes() == 0) return span;
  if (operand.device.buffer)
    state_->stream->copy(span, operand.device);
  else
    state_->stream->copy_to_device(span, {operand.host->data(), operand.bytes()});
  return span;
}

std::vector<ir::Tensor> Executor::run_host(const std::vector<ir::Tensor>& inputs, const RunOptions& options) {
  std::vector<Operand> operands;
  for (const ir::Tensor& tensor : inputs) operands.push_back(Operand::from_host(tensor));
  std::vector<ir::Tensor> results;
  for (const Operand& result : run(operands, options)) results.push_back(to_host(result));
  return results;
}

void Executor::synchronize() { state_->stream->synchronize(); }
backend::Stream& Executor::stream() { return *state_->stream; }
const Executable& Executor::code() const { return *state_->code; }

MemoryUse Executor::memory() const {
  MemoryUse use = state_->own_memory();
  use.pool = state_->pool->peak_bytes();  // shared with the bodies
  return use;
}

MemoryUse Executor::State::own_memory() const {
  MemoryUse use;
  use.weights = code->constant_bytes;
  use.held = code->resident_bytes + code->kept->bytes();
  use.arena = arena ? static_cast<int64_t>(arena->bytes()) : 0;
  use.arena_lower_bound = arena_lower_bound;
  for (const auto& [place, body] : bodies) {
    const MemoryUse inner = body->state_->own_memory();
    use.weights += inner.weights;
    use.held += inner.held;
    use.arena += inner.arena;
    use.arena_lower_bound += inner.arena_lower_bound;
  }
  return use;
}

Run::Run(Executor::State& state, const RunOptions& options)
    : state_(state),
      code_(*state.code),
      graph_(*state.code->graph),
      options_(options),
      facts_(graph_),
      values_(graph_.values.size()) {}

std::vector<Operand> Run::execute(const std::vector<Operand>& inputs) {
  if (inputs.size() != graph_.inputs.size())
    throw Error(Code::kInvalidArgument,
                fmt::format("the model has {} inputs, {} were given", graph_.inputs.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    facts_.set_input(i, inputs[i].dtype, inputs[i].shape);
    Operand& slot = operand(graph_.inputs[i]);
    slot = inputs[i];
    if (slot.host) facts_.set_host(graph_.inputs[i], &*slot.host);
  }
  facts_.check_inputs();
  for (size_t s = 0; s < code_.segments.size(); ++s) {
    const auto& steps = code_.segments[s].steps;
    if (steps.empty()) continue;
    const artifact::StepKind kind = steps[0].step->kind;
    if (kind == artifact::StepKind::kHost)
      host_step(steps[0]);
    else if (kind == artifact::StepKind::kControl)
      control_step(steps[0]);
    else
      launch_segment(s);
    if (options_.observe && (kind == artifact::StepKind::kHost || kind == artifact::StepKind::kControl))
      observe(s, 0, 0);
    let_go(s);
  }
  std::vector<Operand> outputs;
  for (ValueId v : graph_.outputs) {
    if (!operand(v).host && !operand(v).device.buffer)
      on_host(v);  // a constant, or shape arithmetic that is returned
    outputs.push_back(operand(v));
  }
  return outputs;
}

// What segments hand on lies in buffers of the pool, which the next ones may take then. Integers stay: shapes
// are computed of them.
void Run::let_go(size_t segment) {
  if (options_.observe) return;
  for (const ValueId v : state_.lifetimes.last_read[segment]) operand(v).device = {};
}

void Run::set_result(ValueId v, Operand value) {
  if (v == ir::kNoValue) return;
  operand(v) = std::move(value);
  const Operand& kept = operand(v);
  facts_.set_value(v, kept.dtype, kept.shape, kept.host ? &*kept.host : nullptr);
}

const backend::BufferSpan& Run::on_device(ValueId v) {
  Operand& o = operand(v);
  if (o.device.buffer) return o.device;
  const auto& constant = code_.constants[static_cast<size_t>(v)];
  if (constant.buffer) return constant;
  const ir::Tensor& tensor = on_host(v);
  o.device = state_.pool->take(tensor.bytes());
  if (tensor.bytes() > 0) state_.stream->copy_to_device(o.device, {tensor.data(), tensor.bytes()});
  return o.device;
}

const ir::Tensor& Run::on_host(ValueId v) {
  Operand& o = operand(v);
  if (o.host) return *o.host;
  if (o.device.buffer) {
    ir::Tensor tensor(o.dtype, o.shape);
    if (o.bytes() > 0) state_.stream->copy_to_host({tensor.mutable_data(), o.bytes()}, o.device);
    o.host = std::move(tensor);
  } else if (graph_.value(v).constant) {
    o = Operand::from_host(*graph_.value(v).constant);
  } else {
    const auto ints = facts_.ints(v);
    if (!ints) throw Error(Code::kInternal, fmt::format("value {} is read before anything made it", v));
    ir::Tensor tensor(facts_.fact(v).type.dtype, facts_.shape(v));
    tensor.mutable_data();
    for (size_t i = 0; i < ints->size(); ++i) tensor.set_int(static_cast<int64_t>(i), (*ints)[i]);
    o = Operand::from_host(std::move(tensor));
  }
  facts_.set_host(v, &*o.host);
  return *o.host;
}

void Run::host_step(const StepCode& code) {
  const ir::Node& node = graph_.nodes[static_cast<size_t>(code.step->nodes[0])];
  // Shape arithmetic that inference sees through is read off the facts; its operands may never have been
  // materialized.
  const auto is_known = [&](ValueId v) {
    return v == ir::kNoValue || (graph_.value(v).known && facts_.fact(v).known);
  };
  if (std::all_of(node.outputs.begin(), node.outputs.end(), is_known)) {
    for (ValueId v : node.outputs)
      if (v != ir::kNoValue) on_host(v);
    return;
  }
  std::vector<ir::ArrayPtr> operands;
  for (ValueId v : node.inputs) operands.push_back(v == ir::kNoValue ? nullptr : ir::to_array(on_host(v)));
  const std::vector<ir::ArrayPtr> results = ir::evaluate_node(node, operands);
  for (size_t o = 0; o < node.outputs.size(); ++o)
    if (node.outputs[o] != ir::kNoValue)
      set_result(node.outputs[o], Operand::from_host(ir::to_tensor(*results[o])));
}

void Run::observe(size_t segment, size_t step, double device_us) {
  StepEvent event;
  event.segment = segment;
  event.step = step;
  event.code = &code_.segments[segment].steps[step];
  event.device_us = device_us;
  event.read = [this](ValueId v) { return on_host(v); };
  options_.observe(event);
}

}  // namespace thrice::exec
