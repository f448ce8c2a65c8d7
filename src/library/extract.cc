#include "library/extract.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <variant>

#include "ir/region.h"
#include "plan/grouping.h"

namespace thrice::library {

namespace {

using ir::Op;
using ir::OpClass;

std::string number(const ir::Tensor& t, int64_t i) {
  return is_float(t.dtype()) ? fmt::format("{:.9g}", t.as_double(i)) : fmt::format("{}", t.as_int(i));
}

std::string constant_text(const ir::Tensor& t) {
  constexpr int64_t kShown = 64;  // shape operands; longer ones stay apart by the id
  std::string elements;
  for (int64_t i = 0; i < std::min(t.size(), kShown); ++i) elements += (i ? "," : "") + number(t, i);
  if (t.size() > kShown) elements += ",...";
  return fmt::format("{}{}{}:{}", t.size() == 1 ? "" : "{", elements, t.size() == 1 ? "" : "}",
                     dtype_name(t.dtype()));
}

std::string attribute_text(const ir::Attribute& a) {
  if (const auto* i = std::get_if<int64_t>(&a)) return fmt::format("{}", *i);
  if (const auto* d = std::get_if<double>(&a)) return fmt::format("{:.9g}", *d);
  if (const auto* s = std::get_if<std::string>(&a)) return *s;
  if (const auto* v = std::get_if<std::vector<int64_t>>(&a)) return fmt::format("{}", fmt::join(*v, ","));
  return fmt::format("{:.9g}", fmt::join(std::get<std::vector<double>>(a), ","));
}

std::string type_text(const ir::Type& type) {
  std::string dims;
  for (const ir::Dim& d : type.shape) dims += (dims.empty() ? "" : ",") + d.str();
  return fmt::format("{}[{}]", dtype_name(type.dtype), dims);
}

// Operands are numbered first, then the results of the nodes.
void write_texts(const ir::Workload& w, Entry& entry) {
  std::map<ir::ValueId, size_t> numbers;
  for (const ir::ValueId id : w.graph.inputs) {
    const ir::Value& v = w.graph.value(id);
    entry.operands +=
        fmt::format("{}{}{}", entry.operands.empty() ? "" : " ", type_text(v.type), v.is_weight ? "w" : "");
    numbers.emplace(id, numbers.size());
  }
  for (const ir::Node& node : w.graph.nodes) {
    std::string text(ir::op_name(node.op));
    text += "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ir::ValueId id = node.inputs[i];
      text += i ? "," : "";
      if (id == ir::kNoValue)
        text += "_";
      else if (w.graph.value(id).constant)
        text += constant_text(*w.graph.value(id).constant);
      else
        text += fmt::format("{}", numbers.at(id));
    }
    text += ")";
    for (const auto& [name, value] : node.attrs) text += fmt::format(" {}={}", name, attribute_text(value));
    if (node.op == Op::cast)
      text += fmt::format(" to={}", dtype_name(w.graph.value(node.outputs[0]).type.dtype));
    for (const ir::ValueId id : node.outputs)
      if (id != ir::kNoValue) numbers.emplace(id, numbers.size());
    entry.nodes += (entry.nodes.empty() ? "" : "; ") + text;
  }
}

std::string kind_of(const ir::Graph& g) {
  std::vector<std::string> kinds;
  for (const ir::Node& node : g.nodes) {
    const bool known = node.origin >= 0 && static_cast<size_t>(node.origin) < g.origins.size();
    const std::string kind =
        known ? g.origins[static_cast<size_t>(node.origin)].op_type : std::string(ir::op_name(node.op));
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, "+"));
}

std::string pattern_of(const ir::Graph& g) {
  bool reduces = false, computes = false, gathers = false, broadcasts = false, views = false;
  for (const ir::Node& node : g.nodes) {
    const OpClass cls = ir::op_class(node.op);
    switch (node.op) {
      case Op::matmul:
        return "product";
      case Op::conv:
      case Op::conv_transpose:
      case Op::pool:
        return "window";
      case Op::resize:
      case Op::grid_sample:
      case Op::roi_align:
        return "sample";
      case Op::scan_sum:
        return "scan";
      case Op::top_k:
        return "sort";
      case Op::scatter_elements:
      case Op::scatter_nd:
        return "scatter";
      default:
        break;
    }
    reduces |= cls == OpClass::kReduce;
    gathers |= node.op == Op::gather || node.op == Op::gather_elements || node.op == Op::gather_nd;
    views |= cls == OpClass::kView;
    if (!ir::is_elementwise(node.op)) continue;
    computes |= node.op != Op::identity && node.op != Op::cast;
    const ir::Shape& out = g.value(node.outputs[0]).type.shape;
    for (const ir::ValueId id : node.inputs)
      if (id != ir::kNoValue && !g.value(id).constant && !(g.value(id).type.shape == out)) broadcasts = true;
  }
  if (reduces) return computes ? "row" : "reduction";
  if (gathers) return "gather";
  if (broadcasts) return "broadcast";
  return views && !computes ? "layout" : "elementwise";
}

// Sizes of the operator that decides; everything else by the elements it makes and reads.
Features features_of(const ir::Workload& w, const std::vector<ir::Fact>& facts) {
  const family::Work work = family::count_work(w, facts);
  Features f{{"bytes", work.bytes}, {"flops", work.flops}};
  const std::vector<ir::Fact> all = ir::bind(w.graph, facts);
  const auto shape = [&](ir::ValueId id) {
    std::vector<double> dims;
    for (const ir::Dim& d : all[static_cast<size_t>(id)].type.shape)
      dims.push_back(static_cast<double>(d.value()));
    return dims;
  };
  const auto product = [](const std::vector<double>& dims, size_t from, size_t to) {
    double n = 1;
    for (size_t i = from; i < to; ++i) n *= dims[i];
    return n;
  };
  for (const ir::Node& node : w.graph.nodes) {
    if (node.op == Op::matmul) {
      const auto a = shape(node.inputs[0]), y = shape(node.outputs[0]);
      f["batches"] = product(y, 0, y.size() - 2);
      f["rows"] = y[y.size() - 2];
      f["cols"] = y.back();
      f["depth"] = a[a.size() - (node.int_attr("trans_a", 0) != 0 ? 2 : 1)];
      f["transposed"] =
          1.0 + static_cast<double>(node.int_attr("trans_a", 0) + 2 * node.int_attr("trans_b", 0));
    } else if (node.op == Op::conv || node.op == Op::conv_transpose) {
      const auto x = shape(node.inputs[0]), k = shape(node.inputs[1]), y = shape(node.outputs[0]);
      f["batches"] = y[0];
      f["rows"] = y[1];
      f["cols"] = product(y, 2, y.size());
      f["width"] = y.back();
      f["depth"] = x[1];
      f["taps"] = product(k, 2, k.size());
      f["groups"] = static_cast<double>(node.int_attr("group", 1));
      if (node.has_attr("strides")) f["stride"] = static_cast<double>(node.ints_attr("strides").back());
    } else if (ir::op_class(node.op) == OpClass::kReduce) {
      const auto x = shape(node.inputs[0]), y = shape(node.outputs[0]);
      f["rows"] = product(y, 0, y.size());
      f["depth"] = product(x, 0, x.size()) / std::max(1.0, f["rows"]);
    } else {
      continue;
    }
    return f;
  }
  const auto y = shape(w.graph.outputs[0]);
  f["cols"] = y.empty() ? 1 : y.back();
  f["rows"] = product(y, 0, y.size()) / std::max(1.0, f["cols"]);
  return f;
}

// s0, s1, ... of the workload: the outer extents that they stand for.
std::map<std::string, ir::Dim> outer_extents(const ir::Graph& outer, const ir::Workload& w) {
  std::map<std::string, ir::Dim> found;
  for (size_t i = 0; i < w.inputs.size(); ++i) {
    const ir::Value& inner = w.graph.value(w.graph.inputs[i]);
    const ir::Value& value = outer.value(w.inputs[i]);
    for (size_t a = 0; a < inner.type.shape.size(); ++a)
      if (!inner.type.shape[a].is_const()) found.emplace(inner.type.shape[a].str(), value.type.shape[a]);
    if (inner.known && value.known)
      for (size_t k = 0; k < inner.known->size(); ++k)
        if (!(*inner.known)[k].is_const()) found.emplace((*inner.known)[k].str(), (*value.known)[k]);
  }
  return found;
}

Entry described(const ir::Workload& w, const std::vector<ir::Fact>& facts) {
  Entry e;
  e.id = w.hash.substr(0, 16);
  e.kind = kind_of(w.graph);
  e.dtype = dtype_name(w.graph.value(w.graph.outputs[0]).type.dtype);
  e.pattern = pattern_of(w.graph);
  write_texts(w, e);
  e.features = features_of(w, facts);
  return e;
}

}  // namespace

Entry entry_of(const plan::PlannedWorkload& planned) {
  Entry e = described(planned.workload, planned.facts);
  const ir::Graph& g = planned.workload.graph;
  for (size_t i = 0; i < g.inputs.size(); ++i)
    for (size_t a = 0; a < g.value(g.inputs[i]).type.shape.size(); ++a)
      if (const ir::Dim& d = g.value(g.inputs[i]).type.shape[a]; !d.is_const()) {
        const int64_t n = planned.facts[i].type.shape[a].value();
        e.extents[d.str()] = {n, n, n};
        e.variable = true;
      }
  return e;
}

std::vector<Entry> operators_of(const ir::Graph& graph, const std::string& network,
                                const ModelRanges& ranges) {
  plan::PlanOptions options;
  options.planner = "original";
  options.allow_slow = true;
  ir::Bindings low, high;
  for (const ir::ValueId input : graph.inputs)
    for (const ir::Dim& d : graph.value(input).type.shape)
      for (const std::string& symbol : d.symbols()) {
        const auto it = ranges.symbols.find(symbol);
        if (it == ranges.symbols.end())
          throw Error(Code::kInvalidArgument,
                      fmt::format("the extent '{0}' has no range; say it: --range {0}=1..512@128", symbol));
        options.bindings[symbol] = it->second.typical;
        low[symbol] = it->second.low;
        high[symbol] = it->second.high;
      }
  const plan::PlanResult planned = plan::make_plan(graph, target::DeviceSpec{}, options);
  std::map<std::string, Entry> found;
  for (const artifact::Segment& segment : planned.plan.segments)
    for (const artifact::PlanStep& step : segment.steps) {
      if (step.kind != artifact::StepKind::kRegion || found.count(step.workload)) continue;
      const plan::PlannedWorkload& work = planned.workloads.at(step.workload);
      const ir::Workload w = ir::extract(graph, ir::make_region(graph, step.nodes));
      Entry e = described(w, work.facts);
      for (const auto& [name, outer] : outer_extents(graph, w)) {
        Range& r = e.extents[name];
        r.typical = outer.evaluate(options.bindings);
        r.low = std::min(r.typical, outer.evaluate(low));
        r.high = std::max(r.typical, outer.evaluate(high));
        for (const std::string& symbol : outer.symbols()) e.variable |= !ranges.sample_symbols.count(symbol);
      }
      e.networks = {network};
      found.emplace(step.workload, std::move(e));
    }
  std::vector<Entry> entries;
  for (auto& [hash, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace thrice::library
