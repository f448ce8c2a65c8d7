// resize: neighbours and weights by axis, their product summed.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <bit>

#include "family/resize/resize.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

namespace {

using ir::ValueId;

int position_of(const std::string& value, std::initializer_list<const char*> names, const char* what) {
  int i = 0;
  for (const char* name : names) {
    if (value == name) return i;
    ++i;
  }
  throw NotMatched{fmt::format("resize: unknown {} '{}'", what, value)};
}

struct Settings {
  int mode, coordinates, nearest;
  std::string policy;
};

Settings settings_of(const ir::Node& node) {
  return {position_of(node.string_attr("mode", "nearest"), {"nearest", "linear", "cubic"}, "mode"),
          position_of(node.string_attr("coordinate_transformation_mode", "half_pixel"),
                      {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
                       "half_pixel_symmetric", "tf_crop_and_resize"},
                      "coordinate_transformation_mode"),
          position_of(node.string_attr("nearest_mode", "round_prefer_floor"),
                      {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, "nearest_mode"),
          node.string_attr("keep_aspect_ratio_policy", "stretch")};
}

std::vector<int64_t> axes_of(const ir::Node& node, size_t rank) {
  if (node.has_attr("axes")) return node.ints_attr("axes");
  std::vector<int64_t> axes;
  for (size_t a = 0; a < rank; ++a) axes.push_back(static_cast<int64_t>(a));
  return axes;
}

bool has(const ir::Node& node, size_t operand) {
  return node.inputs.size() > operand && node.inputs[operand] != ir::kNoValue;
}

double known_number(const Facts& facts, ValueId value, size_t element) {
  const Fact& fact = facts[static_cast<size_t>(value)];
  if (fact.constant == nullptr)
    throw Error(Code::kInternal, "scales or roi of resize are not known at launch");
  return fact.constant->as_double(static_cast<int64_t>(element));
}

Source float_bits(ValueId value, size_t element) {
  return [value, element](const Facts& facts) -> int64_t {
    return std::bit_cast<int32_t>(static_cast<float>(known_number(facts, value, element)));
  };
}

// Numerator and denominator of the scale that sizes ask for, one for all axes but under "stretch".
std::pair<int64_t, int64_t> size_ratio(const Facts& facts, const ir::Node& node,
                                       const std::vector<int64_t>& axes, size_t k,
                                       const std::string& policy) {
  const std::vector<int64_t> sizes = known_ints(facts[static_cast<size_t>(node.inputs[3])]);
  const auto ratio = [&](size_t i) {
    return std::pair{sizes.at(i), extent_at(facts, node.inputs[0], static_cast<int>(axes[i]))};
  };
  if (policy == "stretch") return ratio(k);
  std::pair<int64_t, int64_t> chosen = ratio(0);
  for (size_t i = 1; i < axes.size(); ++i) {
    const auto other = ratio(i);
    const bool less = other.first * chosen.second < chosen.first * other.second;
    if (policy == "not_smaller" ? !less : less) chosen = other;
  }
  return chosen;
}

// An axis that is copied whatever the extents are at run time: of one extent in the model, and sizes ask for
// no other.
bool is_copied(const ir::Graph& graph, const ir::Node& node, const Settings& s, size_t axis) {
  return has(node, 3) && s.policy == "stretch" && s.coordinates != 5 &&
         graph.value(node.inputs[0]).type.shape[axis] == graph.value(node.outputs[0]).type.shape[axis];
}

}  // namespace

size_t leading_axes(const Workload& workload, const HeavyRegion& region) {
  const ir::Node& node = *region.op;
  size_t kept = workload.graph.value(node.inputs[0]).type.shape.size();
  for (const int64_t a : axes_of(node, kept)) {
    const auto axis = static_cast<size_t>(a);
    if (!is_copied(workload.graph, node, settings_of(node), axis)) kept = std::min(kept, axis);
  }
  return kept;
}

Refusal refuse_resize(const Workload& workload, const HeavyRegion& region) {
  const ir::Node& node = *region.op;
  const Settings s = settings_of(node);
  if (node.int_attr("antialias", 0) != 0)
    return "resize with antialias reads as many neighbours as the scale asks for; it runs on the host";
  const DType dtype = workload.graph.value(node.inputs[0]).type.dtype;
  if (s.mode != 0 && !is_float(dtype)) return "linear and cubic resize of integers runs on the host";
  if (!has(node, 3) && !has(node, 2)) return "resize needs scales or sizes";
  return std::nullopt;
}

void write_resize(Emitter& e, const HeavyRegion& region, const Coords& at,
                  const std::function<void()>& before_values) {
  const ir::Node& node = *region.op;
  const ValueId x = node.inputs[0], y = region.result;
  const Settings s = settings_of(node);
  const auto& shape = e.graph().value(x).type.shape;
  const std::vector<int64_t> axes = axes_of(node, shape.size());
  const DType dtype = e.graph().value(x).type.dtype;

  Template t("portable/resize.h");
  t.set("NAME", "resize_axis").set("NAME_weight", "resize_axis_weight").set("MODE", s.mode);
  t.set("COORDINATES", s.coordinates).set("NEAREST", s.nearest);
  t.set("CUBIC_A", fmt::format("({:.17g})", node.float_attr("cubic_coeff_a", -0.75)));
  t.set("EXCLUDE", node.int_attr("exclude_outside", 0) != 0 ? 1 : 0);
  e.preamble(t.section("types") + t.section("axis"));

  Coords from = at;
  struct Tap {
    size_t axis;
    std::string index, weight, count;
  };
  std::vector<Tap> taps;
  std::string inside;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const auto extents =
        std::pair{e.text(e.dim(x, static_cast<int>(axis))), e.text(e.dim(y, static_cast<int>(axis)))};
    // The scale as a quotient of whole numbers, or as the bits of the operand's float.
    std::string scale;
    Source is_one;
    if (has(node, 3)) {
      const auto part = [node, axes, k, policy = s.policy](bool numerator) -> Source {
        return [node, axes, k, policy, numerator](const Facts& f) {
          const auto ratio = size_ratio(f, node, axes, k, policy);
          return numerator ? ratio.first : ratio.second;
        };
      };
      if (is_copied(e.graph(), node, s, axis)) continue;
      scale = fmt::format("(TH_WIDE){} / (TH_WIDE){}",
                          e.text(e.index().extent(fmt::format("resize size {}", k), part(true))),
                          e.text(e.index().extent(fmt::format("resize from {}", k), part(false))));
      is_one = [node, axes, k, policy = s.policy](const Facts& f) -> int64_t {
        const auto ratio = size_ratio(f, node, axes, k, policy);
        return ratio.first == ratio.second;
      };
    } else {
      const ValueId scales = node.inputs[2];
      scale = fmt::format("(TH_WIDE)th_f32_of_bits({})",
                          e.text(e.index().extent(fmt::format("resize scale {}", k), float_bits(scales, k))));
      is_one = [scales, k](const Facts& f) -> int64_t { return known_number(f, scales, k) == 1; };
    }
    std::string begin = "(TH_WIDE)0", end = "(TH_WIDE)1";
    const bool crops = s.coordinates == 5;
    if (crops && has(node, 1)) {
      const auto bits = [&](size_t i) {
        return fmt::format(
            "(TH_WIDE)th_f32_of_bits({})",
            e.text(e.index().extent(fmt::format("resize roi {}", i), float_bits(node.inputs[1], i))));
      };
      begin = bits(k);
      end = bits(k + axes.size());
    }
    const Tap tap{axis, fmt::format("index{}", axis), fmt::format("weight{}", axis),
                  fmt::format("count{}", axis)};
    e.line(fmt::format("int {}[4];", tap.index));
    e.line(fmt::format("TH_WIDE {}[4];", tap.weight));
    const std::string c = e.text(at[axis]);
    e.line(fmt::format("int {} = 1;", tap.count));
    const auto call = fmt::format("{} = resize_axis({}, {}, {}, {}, {}, {}, {}, {});", tap.count, c,
                                  extents.first, extents.second, scale, begin, end, tap.index, tap.weight);
    if (crops) {
      e.line(call);
      inside += (inside.empty() ? "" : " && ") + fmt::format("{} > 0", tap.count);
    } else {  // an axis that keeps its extent is copied, as in the definition
      const Source keeps = [is_one, x, y, axis](const Facts& f) -> int64_t {
        return is_one(f) == 1 &&
               extent_at(f, x, static_cast<int>(axis)) == extent_at(f, y, static_cast<int>(axis));
      };
      e.line(fmt::format("{}[0] = {};", tap.index, c));
      e.line(fmt::format("{}[0] = (TH_WIDE)1;", tap.weight));
      e.line(fmt::format("if (!{}) {}", e.text(e.index().extent(fmt::format("resize keeps {}", k), keeps)),
                         call));
    }
    taps.push_back(tap);
  }
  before_values();
  if (!inside.empty()) {
    e.line(fmt::format("result = {};", float_literal(dtype, node.float_attr("extrapolation_value", 0))));
    e.open(fmt::format("if ({})", inside));
  }
  if (s.mode == 0) {
    for (const Tap& tap : taps) from[tap.axis] = e.index().var(tap.index + "[0]", shape[tap.axis]);
    e.line(fmt::format("result = {};", e.value(x, from)));
  } else {
    e.line("TH_WIDE sum = (TH_WIDE)0;");
    std::string weight;
    for (const Tap& tap : taps) {
      const std::string k = fmt::format("tap{}", tap.axis);
      e.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", k, tap.count));
      from[tap.axis] = e.declare_int(fmt::format("{}[{}]", tap.index, k));
      weight += fmt::format("{}{}[{}]", weight.empty() ? "" : " * ", tap.weight, k);
    }
    if (weight.empty()) weight = "(TH_WIDE)1";
    e.line(fmt::format("const TH_WIDE weight = {};", weight));
    e.open("if (weight != (TH_WIDE)0)");  // so that a NaN beside the window stays outside
    e.line(fmt::format("sum = sum + weight * (TH_WIDE){};", e.value(x, from)));
    e.close();
    for (size_t k = 0; k < taps.size(); ++k) e.close();
    e.line(fmt::format("result = ({})sum;", compute_type(dtype)));
  }
  if (!inside.empty()) e.close();
}

}  // namespace thrice::family
