// grid_sample and roi_align.
#include <fmt/format.h>

#include "family/resize/resize.h"
#include "family/scalar.h"
#include "family/template.h"

namespace thrice::family {

using ir::ValueId;

void write_grid_sample(Emitter& e, const HeavyRegion& region, const Coords& at) {
  const ir::Node& node = *region.op;
  const ValueId x = node.inputs[0], grid = node.inputs[1];
  const size_t axes = e.graph().value(x).type.shape.size() - 2;
  const std::string mode = node.string_attr("mode", "linear"),
                    padding = node.string_attr("padding_mode", "zeros");
  Template t("portable/sample.h");
  t.set("MODE", mode == "nearest" ? 0 : mode == "cubic" || mode == "bicubic" ? 2 : 1);
  t.set("PADDING", padding == "border" ? 1 : padding == "reflection" ? 2 : 0);
  t.set("ALIGN", node.int_attr("align_corners", 0) != 0 ? 1 : 0);
  e.preamble(t.section("grid"));
  for (size_t d = 0; d < axes; ++d) {  // the last grid coordinate belongs to the first axis from behind
    Coords g{at[0]};
    g.insert(g.end(), at.begin() + 2, at.end());
    g.push_back(e.constant(static_cast<int64_t>(axes - 1 - d)));
    const std::string n = e.value(grid, g), extent = e.text(e.dim(x, static_cast<int>(d) + 2));
    e.line(fmt::format("int index{}[4];", d));
    e.line(fmt::format("float weight{}[4];", d));
    e.line(
        fmt::format("const int count{0} = sample_taps((float){1}, {2}, index{0}, weight{0});", d, n, extent));
  }
  Coords from{at[0], at[1]};
  std::string weight, inside;
  for (size_t d = 0; d < axes; ++d) {
    e.open(fmt::format("for (int tap{0} = 0; tap{0} < count{0}; ++tap{0})", d));
    const Index place = e.declare_int(fmt::format("index{0}[tap{0}]", d));
    from.push_back(place);
    inside += fmt::format("{}{} >= 0", d ? " && " : "", e.text(place));
    weight += fmt::format("{}weight{}[tap{}]", d ? " * " : "", d, d);
  }
  e.line(fmt::format("const float weight = {};", weight));
  e.open(fmt::format("if ({} && weight != 0.0f)", inside));
  e.line(fmt::format("result = result + weight * {};", e.value(x, from)));
  e.close();
  for (size_t d = 0; d < axes; ++d) e.close();
}

void write_roi_align(Emitter& e, const HeavyRegion& region, const Coords& at) {
  const ir::Node& node = *region.op;
  const ValueId x = node.inputs[0], rois = node.inputs[1], batches = node.inputs[2];
  Template t("portable/sample.h");
  e.preamble(t.section("roi"));
  const bool half = node.string_attr("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool average = node.string_attr("mode", "avg") == "avg";
  const int64_t ratio = node.int_attr("sampling_ratio", 0);
  const auto number = [](double v) { return float_literal(DType::kF32, v); };
  const std::string scale = number(node.float_attr("spatial_scale", 1.0)), offset = number(half ? 0.5 : 0.0);
  const char* const names[] = {"y", "x"};
  const int64_t bins[] = {node.int_attr("output_height", 1), node.int_attr("output_width", 1)};
  for (int d = 0; d < 2; ++d) {
    const char* n = names[d];
    const std::string low = e.value(rois, {at[0], e.constant(1 - d)}),
                      high = e.value(rois, {at[0], e.constant(3 - d)});
    e.line(fmt::format("const float {}_low = (float){} * {} - {};", n, low, scale, offset));
    e.line(fmt::format("float {0}_size = (float){1} * {2} - {3} - {0}_low;", n, high, scale, offset));
    if (!half) e.line(fmt::format("if ({0}_size < 1.0f) {0}_size = 1.0f;", n));
    e.line(fmt::format("const float {0}_bin = {0}_size / {1};", n, number(static_cast<double>(bins[d]))));
    e.line(ratio > 0 ? fmt::format("const int {}_grid = {};", n, ratio)
                     : fmt::format("const int {0}_grid = (int)th_ceil_f32({0}_bin);", n));
  }
  const std::string image = e.value(batches, {at[0]});
  const Index batch = e.declare_int(fmt::format("(int){}", image));
  e.line("int samples = 0;");
  e.line(average ? "float sum = 0.0f;" : "float top = -TH_INF_F32;");
  for (int d = 0; d < 2; ++d) {
    const char* n = names[d];
    e.open(fmt::format("for (int {0}_at = 0; {0}_at < {0}_grid; ++{0}_at)", n));
    e.line(fmt::format("int {}_index[2] = {{0, 0}};", n));
    e.line(fmt::format("float {}_weight[2] = {{0.0f, 0.0f}};", n));
    e.line(fmt::format(
        "const int {0}_inside = roi_taps({0}_low + (float){1} * {0}_bin + ((float){0}_at + 0.5f) * {0}_bin / "
        "(float){0}_grid, {2}, {0}_index, {0}_weight);",
        n, e.text(at[static_cast<size_t>(d) + 2]), e.text(e.dim(x, d + 2))));
  }
  e.line("samples = samples + 1;");
  if (!average) e.line("if (!(y_inside && x_inside)) top = top > 0.0f ? top : 0.0f;");
  e.open("if (y_inside && x_inside)");
  e.open("for (int corner = 0; corner < 4; ++corner)");
  const Index row = e.declare_int("y_index[corner / 2]"), col = e.declare_int("x_index[corner % 2]");
  const std::string v = e.value(x, {batch, at[1], row, col});
  const std::string part = fmt::format("y_weight[corner / 2] * x_weight[corner % 2] * {}", v);
  if (average)
    e.line(fmt::format("sum = sum + {};", part));
  else {
    e.line(fmt::format("const float part = {};", part));
    e.line("top = top > part ? top : part;");
  }
  e.close();
  e.close();
  e.close();
  e.close();
  e.line(average ? "result = sum / (float)(samples > 0 ? samples : 1);"
                 : "result = samples > 0 ? top : 0.0f;");
}

}  // namespace thrice::family
