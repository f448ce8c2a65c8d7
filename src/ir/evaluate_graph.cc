// Walks a graph: values live until their last use; control flow runs its bodies with the same walker.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"

namespace thrice::ir {
namespace {

// Holds what is computed once a graph and not once a run: last uses, and constants as arrays (a loop body
// runs hundreds of times).
class Walker {
 public:
  Walker(const Graph& graph, const EvaluateOptions& options, bool keep_constants)
      : graph_(graph),
        options_(options),
        keep_constants_(keep_constants),
        last_use_(graph.values.size(), -1) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      for (ValueId v : graph.nodes[n].inputs)
        if (v != kNoValue) last_use_.at(static_cast<size_t>(v)) = static_cast<int64_t>(n);
    constants_.resize(graph.values.size());
  }

  Results run(const Operands& inputs) {
    if (inputs.size() != graph_.inputs.size())
      throw Error(Code::kInvalidArgument, fmt::format("graph '{}' takes {} inputs, not {}", graph_.name,
                                                      graph_.inputs.size(), inputs.size()));
    std::vector<ArrayPtr> values(graph_.values.size());
    for (size_t i = 0; i < inputs.size(); ++i) values.at(static_cast<size_t>(graph_.inputs[i])) = inputs[i];
    std::vector<bool> kept(graph_.values.size(), false);
    for (ValueId v : graph_.outputs) kept.at(static_cast<size_t>(v)) = true;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (options_.cancelled && options_.cancelled()) throw Error(Code::kCancelled, "evaluation was stopped");
      const Node& node = graph_.nodes[n];
      Operands operands;
      for (ValueId v : node.inputs) operands.push_back(v == kNoValue ? nullptr : read(values, v));
      Results results = evaluate(node, n, operands);
      if (options_.observe) options_.observe(node, results);
      operands.clear();
      for (size_t k = 0; k < node.outputs.size() && k < results.size(); ++k) {
        const ValueId v = node.outputs[k];
        if (v != kNoValue && (last_use_[static_cast<size_t>(v)] >= 0 || kept[static_cast<size_t>(v)]))
          values[static_cast<size_t>(v)] = std::move(results[k]);
      }
      for (ValueId v : node.inputs)
        if (v != kNoValue && last_use_[static_cast<size_t>(v)] == static_cast<int64_t>(n) &&
            !kept[static_cast<size_t>(v)]) {
          values[static_cast<size_t>(v)] = nullptr;
          if (!keep_constants_) constants_[static_cast<size_t>(v)] = nullptr;
        }
    }
    Results outputs;
    for (ValueId v : graph_.outputs) outputs.push_back(read(values, v));
    return outputs;
  }

 private:
  ArrayPtr read(const std::vector<ArrayPtr>& values, ValueId v) {
    const auto at = static_cast<size_t>(v);
    if (values.at(at) != nullptr) return values[at];
    if (constants_[at] == nullptr) {
      const Value& value = graph_.values[at];
      if (!value.constant)
        throw Error(Code::kInternal,
                    fmt::format("graph '{}': value {} is read before it is made", graph_.name, v));
      constants_[at] = to_array(*value.constant);
    }
    return constants_[at];
  }

  Results evaluate(const Node& node, size_t index, const Operands& operands) {
    try {
      switch (node.op) {
        case Op::if_:
          return run_if(node, operands);
        case Op::loop:
          return run_loop(node, operands);
        case Op::scan:
          return run_scan(node, operands);
        default:
          return evaluate_node(node, operands);
      }
    } catch (const Error& e) {
      if (e.code() == Code::kCancelled || node.origin < 0 ||
          static_cast<size_t>(node.origin) >= graph_.origins.size())
        throw;
      const Origin& origin = graph_.origins[static_cast<size_t>(node.origin)];
      throw Error(e.code(),
                  fmt::format("node {} ({} '{}'): {}", index, origin.op_type, origin.name, e.what()));
    }
  }

  Results run_if(const Node& node, const Operands& operands) {
    const Array& condition = operand(node, operands, 0);
    if (condition.i.size() != 1 || node.bodies.size() != 2)
      bad_node(node, "needs one condition and two bodies");
    Walker body(*node.bodies[condition.i[0] != 0 ? 0 : 1], options_, false);
    return body.run({operands.begin() + 1, operands.end()});
  }

  Results run_loop(const Node& node, const Operands& operands);
  Results run_scan(const Node& node, const Operands& operands);

  const Graph& graph_;
  const EvaluateOptions& options_;
  const bool keep_constants_;
  std::vector<int64_t> last_use_;  // node index, -1 = never read
  std::vector<ArrayPtr> constants_;
};

ArrayPtr integer(DType dtype, int64_t v) {
  auto out = make_array(dtype, {});
  out->i[0] = v;
  return out;
}

// Joins one slice an iteration along a new axis.
ArrayPtr stack(const Node& node, const std::vector<ArrayPtr>& slices, int64_t axis, bool reversed) {
  const Array& first = *slices.at(0);
  if (axis < 0) axis += static_cast<int64_t>(first.shape.size()) + 1;
  if (axis < 0 || axis > static_cast<int64_t>(first.shape.size())) bad_node(node, "scan axis out of range");
  std::vector<int64_t> shape = first.shape;
  const auto n = static_cast<int64_t>(slices.size());
  shape.insert(shape.begin() + axis, n);
  auto out = make_array(first.dtype, shape);
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < first.shape.size(); ++d)
    (static_cast<int64_t>(d) < axis ? outer : inner) *= first.shape[d];
  for (int64_t k = 0; k < n; ++k) {
    const Array& slice = *slices[static_cast<size_t>(reversed ? n - 1 - k : k)];
    if (slice.shape != first.shape || slice.dtype != first.dtype)
      bad_node(node, "iterations give different shapes");
    on_storage(*out, slice, [&](auto& to, const auto& from) {
      for (int64_t o = 0; o < outer; ++o)
        std::copy_n(from.begin() + o * inner, inner, to.begin() + (o * n + k) * inner);
    });
  }
  return out;
}

// Slice k of x along `axis`, that axis removed.
ArrayPtr slice_of(const Array& x, size_t axis, int64_t k) {
  std::vector<int64_t> shape = x.shape;
  const int64_t n = shape[axis];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  auto out = make_array(x.dtype, shape);
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d != axis) (d < axis ? outer : inner) *= x.shape[d];
  on_storage(*out, x, [&](auto& to, const auto& from) {
    for (int64_t o = 0; o < outer; ++o)
      std::copy_n(from.begin() + (o * n + k) * inner, inner, to.begin() + o * inner);
  });
  return out;
}

// No iteration ran: extents as far as the body's types say, and 0 along the scan axis.
ArrayPtr empty_stack(const Graph& body, size_t output, int64_t axis) {
  const Type& type = body.value(body.outputs.at(output)).type;
  std::vector<int64_t> shape;
  for (const Dim& d : type.shape) shape.push_back(d.is_const() ? d.value() : 0);
  if (axis < 0) axis += static_cast<int64_t>(shape.size()) + 1;
  shape.insert(shape.begin() + std::clamp<int64_t>(axis, 0, static_cast<int64_t>(shape.size())), 0);
  return make_array(type.dtype, shape);
}

Results Walker::run_loop(const Node& node, const Operands& operands) {
  const auto carried = static_cast<size_t>(node.int_attr("num_carried"));
  const auto scans = static_cast<size_t>(node.int_attr("num_scan_outputs", 0));
  if (node.bodies.size() != 1 || operands.size() < 2 + carried)
    bad_node(node, "needs a body and its carried values");
  const Graph& graph = *node.bodies[0];
  if (graph.outputs.size() != 1 + carried + scans) bad_node(node, "the body has the wrong number of results");
  const auto scalar_of = [&](size_t i, int64_t otherwise) {
    if (!has_operand(operands, i)) return otherwise;
    if (operands[i]->i.size() != 1) bad_node(node, "trip count and condition must have one element");
    return operands[i]->i[0];
  };
  const int64_t trips = scalar_of(0, std::numeric_limits<int64_t>::max());
  bool going = scalar_of(1, 1) != 0;
  Walker body(graph, options_, true);
  Operands state(operands.begin() + 2, operands.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
  std::vector<std::vector<ArrayPtr>> collected(scans);
  for (int64_t t = 0; t < trips && going; ++t) {
    Operands inputs{integer(DType::kI64, t), integer(DType::kBool, 1)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    inputs.insert(inputs.end(), operands.begin() + 2 + static_cast<std::ptrdiff_t>(carried), operands.end());
    state.clear();
    Results results = body.run(inputs);
    if (results[0]->i.size() != 1) bad_node(node, "the body's condition must have one element");
    going = results[0]->i[0] != 0;
    state.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    for (size_t s = 0; s < scans; ++s) collected[s].push_back(results[1 + carried + s]);
  }
  Results out = state;
  for (size_t s = 0; s < scans; ++s)
    out.push_back(collected[s].empty() ? empty_stack(graph, 1 + carried + s, 0)
                                       : stack(node, collected[s], 0, false));
  return out;
}

Results Walker::run_scan(const Node& node, const Operands& operands) {
  const auto carried = static_cast<size_t>(node.int_attr("num_carried"));
  const auto scanned = static_cast<size_t>(node.int_attr("num_scanned"));
  if (node.bodies.size() != 1 || scanned == 0 || operands.size() < carried + scanned)
    bad_node(node, "needs a body, carried and scanned values");
  const Graph& graph = *node.bodies[0];
  if (graph.outputs.size() < carried) bad_node(node, "the body has too few results");
  const size_t scans = graph.outputs.size() - carried;
  const std::vector<int64_t> no_in(scanned, 0), no_out(scans, 0);
  const auto in_axes = ints_or(node, "scan_input_axes", no_in),
             out_axes = ints_or(node, "scan_output_axes", no_out);
  const auto in_back = ints_or(node, "scan_input_directions", no_in);
  const auto out_back = ints_or(node, "scan_output_directions", no_out);
  if (in_axes.size() != scanned || in_back.size() != scanned || out_axes.size() != scans ||
      out_back.size() != scans)
    bad_node(node, "axes or directions have the wrong length");
  std::vector<size_t> axes(scanned);
  int64_t trips = -1;
  for (size_t s = 0; s < scanned; ++s) {
    const Array& x = operand(node, operands, carried + s);
    const auto rank = static_cast<int64_t>(x.shape.size());
    const int64_t axis = in_axes[s] < 0 ? in_axes[s] + rank : in_axes[s];
    if (axis < 0 || axis >= rank) bad_node(node, "scan axis out of range");
    axes[s] = static_cast<size_t>(axis);
    if (trips >= 0 && x.shape[axes[s]] != trips) bad_node(node, "scanned values differ in length");
    trips = x.shape[axes[s]];
  }
  Walker body(graph, options_, true);
  Operands state(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(carried));
  std::vector<std::vector<ArrayPtr>> collected(scans);
  for (int64_t t = 0; t < trips; ++t) {
    Operands inputs = state;
    for (size_t s = 0; s < scanned; ++s)
      inputs.push_back(slice_of(*operands[carried + s], axes[s], in_back[s] != 0 ? trips - 1 - t : t));
    inputs.insert(inputs.end(), operands.begin() + static_cast<std::ptrdiff_t>(carried + scanned),
                  operands.end());
    Results results = body.run(inputs);
    state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(carried));
    for (size_t s = 0; s < scans; ++s) collected[s].push_back(results[carried + s]);
  }
  Results out = state;
  for (size_t s = 0; s < scans; ++s)
    out.push_back(collected[s].empty() ? empty_stack(graph, carried + s, out_axes[s])
                                       : stack(node, collected[s], out_axes[s], out_back[s] != 0));
  return out;
}

}  // namespace

std::vector<ArrayPtr> evaluate_graph(const Graph& graph, const std::vector<ArrayPtr>& inputs,
                                     const EvaluateOptions& options) {
  return Walker(graph, options, false).run(inputs);
}

}  // namespace thrice::ir
