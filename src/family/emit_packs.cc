// The emitter's packs: neighbours along one coordinate that CUDA loads and stores take at once.
#include <fmt/format.h>

#include "family/emitter.h"
#include "family/scalar.h"

namespace thrice::family {

bool Emitter::packs_here(Index offset) const {
  if (pack_pass_ == PackPass::kNone || scopes_.size() != pack_depth_) return false;
  const auto slope = index_.slope(offset, pack_->lane);
  return slope && *slope == 1;
}

std::string Emitter::pack_method(const char* method, const std::string& buffer, Index offset,
                                 const std::string& at) const {
  if (!pack_->full.empty() && offset == pack_->even)
    return fmt::format("{}_even({} + {}, {}, {}, {})", method, buffer, at, pack_->full, pack_->first,
                       pack_->end);
  if (!pack_->full.empty())
    return fmt::format("{}({} + {}, {}, {}, {})", method, buffer, at, pack_->full, pack_->first, pack_->end);
  return fmt::format("{}{}({} + {})", method,
                     index_.multiple_of(offset, pack_->lane, pack_->lanes) ? "" : "_any", buffer, at);
}

namespace {

// Whether whatever a kernel reads and writes as a float has 16 bits.
bool is_narrow(const ir::Graph& graph) {
  for (const auto* values : {&graph.inputs, &graph.outputs})
    for (const ir::ValueId v : *values) {
      const DType t = graph.value(v).type.dtype;
      if (is_float(t) && t != DType::kF16 && t != DType::kBF16) return false;
    }
  return true;
}

}  // namespace

std::string Emitter::quick_expression(const ir::Node& node, const std::vector<std::string>& operands,
                                      const Coords& coords, DType result) {
  if (compute_type(result) != "float") return "";
  if (node.op == ir::Op::div) {
    const ir::ValueId y = node.inputs[1];
    const Coords at = broadcast(y, coords, graph().value(node.outputs[0]).type.shape);
    const bool one = !index_.any_depends(at, pack_->lane) && !graph().value(y).constant;
    return one ? fmt::format("th_div_by_f32({}, {})", operands[0], operands[1]) : "";
  }
  if ((node.op == ir::Op::exp || node.op == ir::Op::sigmoid) && is_narrow(graph()))
    return fmt::format("th_near_{}_f32({})", ir::op_name(node.op), operands[0]);
  return "";
}

std::string Emitter::load_pack(const std::string& buffer, DType dtype, Index offset) {
  std::string name, element = pack_->element;
  if (pack_pass_ == PackPass::kUse) {
    name = pack_->loads.at(pack_next_load_++);
  } else {
    const auto [kept, fresh_one] = kept_packs_.emplace(fmt::format("{} {}", buffer, offset.id), "");
    if (fresh_one) {
      kept->second = fresh("in");
      head_ += fmt::format("  th_pack<{}, {}> {}[{}];\n", storage_type(dtype), pack_->lanes, kept->second,
                           pack_->places);
      const std::string at = text(offset);
      line(fmt::format("{}[{}].{};", kept->second, pack_->place, pack_method("load", buffer, offset, at)));
    }
    name = kept->second;
    pack_->loads.push_back(name);
    pack_->buffers.push_back(buffer);
    element = "0";
  }
  return load(fmt::format("{}[{}].v", name, pack_->place), dtype, element);
}

void Emitter::store_pack(const std::string& buffer, DType dtype, Index offset, const std::string& element) {
  if (pack_pass_ == PackPass::kLoad) {
    const std::string name = fresh("out");
    head_ += fmt::format("  th_pack<{0}, {1}> {2}[{3}];\n  int {2}_at[{3}];\n", storage_type(dtype),
                         pack_->lanes, name, pack_->places);
    line(fmt::format("{}_at[{}] = {};", name, pack_->place, text(offset)));
    pack_->stores.push_back(
        fmt::format("{}[{}].{};", name, pack_->place,
                    pack_method("store", buffer, offset, fmt::format("{}_at[{}]", name, pack_->place))));
    pack_->outs.push_back(name);
    return;
  }
  store_element(fmt::format("{}[{}].v", pack_->outs.at(pack_next_store_++), pack_->place), dtype,
                pack_->element, element);
}

void Emitter::load_packs(Packs& packs, const std::string& column, const std::function<void()>& write) {
  packs.element.clear();
  packs.loads.clear();
  packs.buffers.clear();
  packs.stores.clear();
  packs.outs.clear();
  open("");
  line(fmt::format("const int {} = {};", index_.node(packs.lane).name, column));
  pack_ = &packs;
  pack_pass_ = PackPass::kLoad;
  pack_depth_ = scopes_.size();
  write();
  pack_pass_ = PackPass::kNone;
  close();
}

void Emitter::use_packs(Packs& packs, const std::string& column, const std::string& guard,
                        const std::function<void()>& write) {
  packs.element = fresh("t");
  line("TH_UNROLL");
  open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", packs.element, packs.lanes));
  line(fmt::format("const int {} = {} + {};", index_.node(packs.lane).name, column, packs.element));
  if (!guard.empty()) open(fmt::format("if ({})", guard));
  pack_ = &packs;
  pack_pass_ = PackPass::kUse;
  pack_depth_ = scopes_.size();
  pack_next_load_ = pack_next_store_ = 0;
  write();
  pack_pass_ = PackPass::kNone;
  if (!guard.empty()) close();
  close();
  for (const std::string& store : packs.stores) line(store);
}

}  // namespace thrice::family
