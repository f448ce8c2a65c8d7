#include "family/emitter.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <utility>

#include "family/scalar.h"

namespace thrice::family {

using ir::Dim;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

Emitter::Emitter(ProgramDraft& draft, std::string symbol)
    : draft_(draft), symbol_(std::move(symbol)), scopes_(1) {}

// --- integers

Index Emitter::dim(ValueId value, int axis) {
  return index_.extent(graph().value(value).type.shape[static_cast<size_t>(axis)], extent_of(value, axis));
}

std::vector<Index> Emitter::dims(ValueId value) {
  std::vector<Index> all;
  for (size_t a = 0; a < graph().value(value).type.shape.size(); ++a)
    all.push_back(dim(value, static_cast<int>(a)));
  return all;
}

Index Emitter::elements(ValueId value) {
  return index_.extent(ir::num_elements(graph().value(value).type.shape), elements_of(value));
}

Index Emitter::product(const std::vector<Index>& factors) {
  Index all = constant(1);
  for (const Index f : factors) all = index_.mul(all, f);
  return all;
}

std::string Emitter::text(Index i) {
  const IndexTable::Node n = index_.node(i);
  using Kind = IndexTable::Kind;
  if (n.kind == Kind::kConst) return n.value < 0 ? fmt::format("({})", n.value) : fmt::format("{}", n.value);
  if (n.kind == Kind::kVar) return n.name;
  if (n.kind == Kind::kExtent) {
    const auto [it, fresh] = extent_of_.emplace(i.id, fmt::format("d{}", extents_.size()));
    if (fresh) extents_.push_back(n.source);
    return it->second;
  }
  const std::string what = fmt::format("#{}", i.id);
  if (const auto* name = find(what)) return *name;
  const std::string a = text(n.a), b = text(n.b);
  printed_.insert(i.id);
  std::string expression;
  switch (n.kind) {
    case Kind::kAdd:
      expression = fmt::format("{} + {}", a, b);
      break;
    case Kind::kSub:
      expression = fmt::format("{} - {}", a, b);
      break;
    case Kind::kMul:
      expression = fmt::format("{} * {}", a, b);
      break;
    case Kind::kDiv:  // non-negative by contract; unsigned division is the cheaper one
      expression = fmt::format("(int)((th_u32){} / (th_u32){})", a, b);
      break;
    case Kind::kMod:
      expression = fmt::format("(int)((th_u32){} % (th_u32){})", a, b);
      break;
    case Kind::kMin:
      expression = fmt::format("th_min_int({}, {})", a, b);
      break;
    default:
      expression = fmt::format("th_max_int({}, {})", a, b);
      break;
  }
  const std::string name = fresh("i");
  line(fmt::format("const int {} = {};", name, expression));
  remember(what, name);
  return name;
}

Index Emitter::declare_int(const std::string& expression) {
  const std::string what = "int " + expression;
  if (const auto* name = find(what)) return index_.var(*name);
  const std::string name = fresh("i");
  line(fmt::format("const int {} = {};", name, expression));
  remember(what, name);
  return index_.var(name);
}

// --- text

void Emitter::line(const std::string& statement) {
  body_.append(static_cast<size_t>(indent_) * 2, ' ');
  body_ += statement;
  body_ += '\n';
}

void Emitter::open(const std::string& head) {
  line(head.empty() ? "{" : head + " {");
  ++indent_;
  scopes_.emplace_back();
}

void Emitter::close() {
  scopes_.pop_back();
  --indent_;
  line("}");
}

Index Emitter::open_loop(const std::string& begin, const std::string& end, const std::string& step,
                         std::optional<Dim> bound) {
  const std::string name = fresh("j");
  open(fmt::format("for (int {0} = {1}; {0} < {2}; {0} += {3})", name, begin, end, step));
  return bound ? index_.var(name, *bound) : index_.var(name);
}

std::string Emitter::fresh(const std::string& stem) { return fmt::format("{}{}", stem, counters_[stem]++); }

std::string Emitter::local_array(const std::string& type, int64_t elements) {
  const std::string name = fresh("shared");
  head_ += fmt::format("  TH_LOCAL {} {}[{}];\n", type, name, elements);
  return name;
}

const std::string* Emitter::find(const std::string& what) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto it = scope->names.find(what);
    if (it != scope->names.end()) return &it->second;
  }
  return nullptr;
}

std::string Emitter::declare(DType dtype, const std::string& expression) {
  const std::string name = fresh("v");
  line(fmt::format("const {} {} = {};", variable_type(dtype), name, expression));
  if (lanes_ > 0) vectors_.insert(name);
  return name;
}

// --- values

void Emitter::bind(ValueId value, Read read) { bound_[value] = std::move(read); }
void Emitter::unbind(ValueId value) { bound_.erase(value); }

void Emitter::bind_temporary(ValueId value, int number) {
  bind(value, [this, value, number](const Coords& coords) {
    const std::string offset = text(index_.linear(coords, dims(value)));
    return load(draft_.temporary_name(number), draft_.temporary(number).dtype, offset);
  });
}

void Emitter::bind_output(ValueId value, size_t output) {
  bind(value, [this, value, output](const Coords& coords) {
    const std::string offset = text(index_.linear(coords, dims(value)));
    return load(draft_.output_name(output), graph().value(value).type.dtype, offset);
  });
}

std::string Emitter::load(const std::string& buffer, DType dtype, const std::string& offset) {
  if (dtype == DType::kF16) return declare(dtype, fmt::format("th_load_f16({}, {})", buffer, offset));
  if (dtype == DType::kBF16) return declare(dtype, fmt::format("th_load_bf16({}, {})", buffer, offset));
  return declare(dtype, fmt::format("{}[{}]", buffer, offset));
}

void Emitter::store(size_t output, const Coords& coords, const std::string& element) {
  const ValueId value = graph().outputs[output];
  const Index at = index_.linear(coords, dims(value));
  const std::string offset = text(at);
  const std::string buffer = draft_.output_name(output);
  const DType dtype = graph().value(value).type.dtype;
  if (lanes_ > 0) {
    if (storage_type(dtype) != compute_type(dtype) || !is_float(dtype) || lane_stride(at) != 1)
      throw NotMatched{"neighbours do not follow each other in the result"};
    line(fmt::format("vstore{}(({})({}), 0, {} + {});", lanes_, variable_type(dtype), element, buffer,
                     offset));
  } else if (pack_pass_ != PackPass::kNone) {
    if (packs_here(at))
      store_pack(buffer, dtype, at, element);
    else if (pack_pass_ == PackPass::kUse)
      store_element(buffer, dtype, offset, element);
  } else {
    store_element(buffer, dtype, offset, element);
  }
}

void Emitter::store_temporary(int number, const std::string& offset, const std::string& element) {
  const std::string buffer = draft_.temporary_name(number);
  const DType dtype = draft_.temporary(number).dtype;
  store_element(buffer, dtype, offset, element);
}

void Emitter::store_element(const std::string& buffer, DType dtype, const std::string& offset,
                            const std::string& element) {
  if (dtype == DType::kF16)
    line(fmt::format("th_store_f16({}, {}, {});", buffer, offset, element));
  else if (dtype == DType::kBF16)
    line(fmt::format("th_store_bf16({}, {}, {});", buffer, offset, element));
  else
    line(fmt::format("{}[{}] = {};", buffer, offset, element));
}

Coords Emitter::broadcast(ValueId operand, const Coords& out, const std::vector<Dim>& out_shape) {
  const auto& shape = graph().value(operand).type.shape;
  Coords coords(shape.size());
  const size_t skip = out_shape.size() - shape.size();
  for (size_t a = 0; a < shape.size(); ++a) {
    const Index c = out[skip + a];
    const Dim& d = shape[a];
    // An axis of one element of both keeps its coordinate: lanes along it stay lanes.
    if (d.is_const() && d.value() == 1 && !(d == out_shape[skip + a]))
      coords[a] = constant(0);
    else if (d.is_const() || d == out_shape[skip + a])
      coords[a] = c;
    else  // may be one at run time: then every coordinate reads element 0
      coords[a] = index_.mul(c, index_.extent("wide " + d.str(),
                                              [s = extent_of(operand, static_cast<int>(a))](
                                                  const Facts& f) -> int64_t { return s(f) == 1 ? 0 : 1; }));
  }
  return coords;
}

std::string Emitter::value(ValueId value, const Coords& coords) {
  const auto bound = bound_.find(value);
  if (bound != bound_.end()) return bound->second(coords);
  if (lanes_ > 0 && !index_.any_depends(coords, lane_)) {  // one for all lanes
    const int64_t lanes = std::exchange(lanes_, 0);
    const std::string name = this->value(value, coords);
    lanes_ = lanes;
    return name;
  }
  std::string what = fmt::format("{}{}", lanes_ > 0 ? "lanes" : "v", value);
  for (const Index c : coords) what += fmt::format(",{}", c.id);
  if (const auto* name = find(what)) return *name;
  const std::string name = make_value(value, coords);
  remember(what, name);
  return name;
}

std::string Emitter::make_value(ValueId value, const Coords& coords) {
  const ir::Value& v = graph().value(value);
  if (v.constant) return constant_element(value, coords);
  if (v.producer < 0) {
    const std::string buffer = draft_.input_name(value);
    if (buffer.empty()) throw NotMatched{"a shape operand is also read as data"};
    const Index offset = index_.linear(coords, dims(value));
    if (lanes_ > 0) return load_lanes(buffer, v.type.dtype, offset);
    if (packs_here(offset)) return load_pack(buffer, v.type.dtype, offset);
    return load(buffer, v.type.dtype, text(offset));
  }
  const ir::Node& node = graph().nodes[static_cast<size_t>(v.producer)];
  switch (ir::op_class(node.op)) {
    case OpClass::kUnary:
    case OpClass::kBinary:
    case OpClass::kTernary:
      return compute(node, value, coords);
    case OpClass::kView:
      return view(node, value, coords);
    default:
      // Over no axes a reduction moves nothing.
      if (node.op == Op::reduce && node.ints_attr("axes").empty()) return this->value(node.inputs[0], coords);
      throw NotMatched{fmt::format("{} is not evaluated element by element", ir::op_name(node.op))};
  }
}

std::string Emitter::compute(const ir::Node& node, ValueId result, const Coords& coords) {
  const ir::Type& type = graph().value(result).type;
  std::vector<DType> types;
  std::vector<std::string> operands;
  for (const ValueId input : node.inputs) {
    types.push_back(graph().value(input).type.dtype);
    operands.push_back(value(input, broadcast(input, coords, type.shape)));
  }
  if (node.op == Op::identity) return operands[0];
  if (lanes_ > 0) return compute_lanes(node, types, operands, type.dtype);
  if (pack_pass_ != PackPass::kNone) {
    const std::string quick = quick_expression(node, operands, coords, type.dtype);
    if (!quick.empty()) return declare(type.dtype, quick);
  }
  return declare(type.dtype, scalar_expression(node, types, operands, type.dtype));
}

std::string Emitter::constant_element(ValueId value, const Coords& coords) {
  const ir::Tensor& tensor = *graph().value(value).constant;
  if (tensor.size() == 1) return literal(tensor, 0);
  if (lanes_ > 0) throw NotMatched{"a table that differs from lane to lane"};
  const Index flat = index_.linear(coords, dims(value));
  if (index_.is_const(flat)) return literal(tensor, index_.node(flat).value);
  const std::string table = fmt::format("{}_table{}", symbol_, value);
  if (counters_[table]++ == 0) {
    std::string elements;
    for (int64_t i = 0; i < tensor.size(); ++i) elements += (i ? ", " : "") + literal(tensor, i);
    preamble_ += fmt::format("TH_CONSTANT {} {}[{}] = {{{}}};\n", compute_type(tensor.dtype()), table,
                             tensor.size(), elements);
  }
  return declare(tensor.dtype(), fmt::format("{}[{}]", table, text(flat)));
}

bool Emitter::divides(Index variable) const {
  for (const int id : printed_) {
    const auto kind = index_.node({id}).kind;
    if ((kind == IndexTable::Kind::kDiv || kind == IndexTable::Kind::kMod) && index_.depends({id}, variable))
      return true;
  }
  return false;
}

KernelDraft Emitter::finish(std::function<void(const Facts&, artifact::Launch&)> geometry, int64_t threads,
                            int64_t cluster, bool alone) {
  KernelDraft kernel;
  kernel.symbol = symbol_;
  kernel.extents = extents_;
  kernel.geometry = std::move(geometry);
  kernel.text = preamble_;
  kernel.text +=
      threads > 0 ? fmt::format("TH_KERNEL_{}({}) ", alone ? "ALONE" : "THREADS", threads) : "TH_KERNEL ";
  if (cluster > 1) kernel.text += fmt::format("TH_CLUSTER({}) ", cluster);
  kernel.text += fmt::format("{}({}{}) {{\n", symbol_, draft_.parameters(), maps_);
  for (size_t i = 0; i < extents_.size(); ++i) kernel.text += fmt::format("  const int d{0} = E[{0}];\n", i);
  kernel.text += head_ + body_ + "}\n";
  return kernel;
}

Refusal refuse_draft(const std::function<void()>& draft) {
  try {
    draft();
    return std::nullopt;
  } catch (const NotMatched& reason) {
    return reason.reason;
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    return std::string(error.what());
  }
}

Refusal refuse_inlining(const Workload& workload, const std::set<ir::NodeId>& except) {
  if (auto refusal = refuse_dtypes(workload)) return refusal;
  for (size_t n = 0; n < workload.graph.nodes.size(); ++n) {
    if (except.count(static_cast<ir::NodeId>(n))) continue;
    const ir::Node& node = workload.graph.nodes[n];
    if (node.op == Op::reduce && node.ints_attr("axes").empty()) continue;
    const OpClass cls = ir::op_class(node.op);
    if (cls != OpClass::kUnary && cls != OpClass::kBinary && cls != OpClass::kTernary &&
        cls != OpClass::kView)
      return fmt::format("{} is not evaluated element by element", ir::op_name(workload.graph.nodes[n].op));
  }
  return std::nullopt;
}

}  // namespace thrice::family
