// ir/check.h: structural_hash.
#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "ir/check.h"

namespace thrice::ir {
namespace {

// Values and symbols are numbered in order of first sight, so that neither ids nor names matter. Shapes of
// results follow from the inputs, operators and attributes: only their element types and ranks are hashed.
class StructuralHash {
 public:
  StructuralHash(const Graph& graph, bool with_values)
      : graph_(graph), with_values_(with_values), number_(graph.values.size(), -1) {}

  std::string run() {
    count(graph_.inputs.size());
    for (ValueId id : graph_.inputs) input(id);
    count(graph_.nodes.size());
    for (const Node& n : graph_.nodes) node(n);
    count(graph_.outputs.size());
    for (ValueId id : graph_.outputs) operand(id);
    return hasher_.hex();
  }

 private:
  void number(int64_t value) { hasher_.add(value); }
  void count(size_t n) { number(static_cast<int64_t>(n)); }
  void text(std::string_view s) { hasher_.add(s); }
  void announce(ValueId id) {
    if (number_[static_cast<size_t>(id)] < 0) number_[static_cast<size_t>(id)] = next_++;
  }

  std::string dim_text(const Dim& d) {
    std::vector<std::string> terms;
    for (const Dim::Term& t : d.terms()) {
      std::vector<std::string> atoms;
      for (const Dim::AtomPtr& atom : t.first) atoms.push_back(atom_text(*atom));
      std::sort(atoms.begin(), atoms.end());
      std::string term = fmt::format("{}", t.second);
      for (const std::string& a : atoms) term += "*" + a;
      terms.push_back(std::move(term));
    }
    std::sort(terms.begin(), terms.end());
    std::string out;
    for (const std::string& t : terms) out += "+" + t;
    return out;
  }
  std::string atom_text(const Dim::Atom& atom) {
    if (atom.kind == AtomKind::kSymbol) {
      const auto [it, added] = symbols_.emplace(atom.name, symbols_.size());
      return fmt::format("s{}", it->second);
    }
    return fmt::format("f{}({};{})", static_cast<int>(atom.kind), dim_text(atom.a), dim_text(atom.b));
  }

  void input(ValueId id) {
    announce(id);
    const Value& value = graph_.value(id);
    number(static_cast<int64_t>(value.type.dtype));
    count(value.type.shape.size());
    for (const Dim& d : value.type.shape) text(dim_text(d));
    if (value.is_weight) text("weight");
    number(value.known ? static_cast<int64_t>(value.known->size()) : -1);
    if (value.known)
      for (const Dim& d : *value.known) text(dim_text(d));
  }

  void constant(const Tensor& t) {
    number(static_cast<int64_t>(t.dtype()));
    count(t.shape().size());
    for (int64_t extent : t.shape()) number(extent);
    if (!with_values_) return;
    hasher_.add(std::span(t.data(), t.bytes()));
    if (t.dtype() == DType::kString)
      for (const std::string& s : t.string_values()) text(s);
  }

  void operand(ValueId id) {
    if (id == kNoValue) return number(-1);
    const bool first = number_[static_cast<size_t>(id)] < 0;
    announce(id);
    number(number_[static_cast<size_t>(id)]);
    if (const auto& tensor = graph_.value(id).constant; tensor && first) constant(*tensor);
  }

  void attribute(const Attribute& attr) {
    count(attr.index());
    if (const auto* i = std::get_if<int64_t>(&attr)) {
      number(*i);
    } else if (const auto* d = std::get_if<double>(&attr)) {
      number(std::bit_cast<int64_t>(*d));
    } else if (const auto* s = std::get_if<std::string>(&attr)) {
      text(*s);
    } else if (const auto* v = std::get_if<std::vector<int64_t>>(&attr)) {
      count(v->size());
      for (int64_t i : *v) number(i);
    } else {
      const auto& list = std::get<std::vector<double>>(attr);
      count(list.size());
      for (double d : list) number(std::bit_cast<int64_t>(d));
    }
  }

  void node(const Node& n) {
    text(op_name(n.op));
    count(n.inputs.size());
    for (ValueId id : n.inputs) operand(id);
    count(n.attrs.size());
    for (const auto& [key, attr] : n.attrs) {
      text(key);
      attribute(attr);
    }
    count(n.outputs.size());
    for (ValueId id : n.outputs) {
      if (id == kNoValue) {
        number(-1);
        continue;
      }
      announce(id);
      number(static_cast<int64_t>(graph_.value(id).type.dtype));
      count(graph_.value(id).type.shape.size());
    }
    count(n.bodies.size());
    for (const auto& body : n.bodies) text(StructuralHash(*body, with_values_).run());
  }

  const Graph& graph_;
  const bool with_values_;
  Hasher hasher_;
  std::vector<int64_t> number_;
  int64_t next_ = 0;
  std::map<std::string, size_t> symbols_;
};

}  // namespace

std::string structural_hash(const Graph& graph, bool with_constant_values) {
  return StructuralHash(graph, with_constant_values).run();
}

}  // namespace thrice::ir
