#include "report/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/page.h"
#include "report/table.h"

namespace thrice::report {

namespace {
std::string text_of(int64_t count) { return bytes(static_cast<double>(count)); }
}  // namespace

std::string memory_text(const exec::PredictedMemory& memory, const std::string& extents) {
  const exec::MemoryUse& use = memory.use;
  std::string text = fmt::format(
      "device memory at {}: {} in all\n"
      "  weights: {} held, {} as the model has them\n"
      "  inputs, outputs, values between segments: {}\n"
      "  temporaries: an arena of {}; the most alive at one time are {}\n"
      "  beside the weights: {}; no order of these launches needs less than {}\n",
      extents.empty() ? "fixed shapes" : extents, text_of(use.total()), text_of(use.held),
      text_of(use.weights), text_of(use.pool), text_of(use.arena), text_of(use.arena_lower_bound),
      text_of(use.peak()), text_of(memory.lower_bound()));
  if (!memory.missing.empty()) text += "  not counted: " + memory.missing + "\n";
  if (memory.holders.empty()) return text;
  constexpr size_t kShown = 8;
  text += fmt::format("the arena is fullest in '{}', which finds alive:\n", memory.fullest);
  Table table({"made by", "what", "bytes"});
  for (size_t h = 0; h < std::min(kShown, memory.holders.size()); ++h)
    table.add({memory.holders[h].step, memory.holders[h].is_scratch ? "scratch" : "value",
               std::to_string(memory.holders[h].bytes)});
  text += table.str({0, 1}, 70);
  if (memory.holders.size() > kShown) text += fmt::format("and {} more\n", memory.holders.size() - kShown);
  return text;
}

std::string memory_json(const exec::PredictedMemory& memory, const std::string& extents) {
  const exec::MemoryUse& use = memory.use;
  nlohmann::json j = {{"extents", extents},
                      {"total_bytes", use.total()},
                      {"peak_bytes", use.peak()},
                      {"lower_bound_bytes", memory.lower_bound()},
                      {"weight_bytes", use.weights},
                      {"held_weight_bytes", use.held},
                      {"pool_bytes", use.pool},
                      {"arena_bytes", use.arena},
                      {"arena_lower_bound_bytes", use.arena_lower_bound},
                      {"fullest", memory.fullest}};
  if (!memory.missing.empty()) j["missing"] = memory.missing;
  j["alive"] = nlohmann::json::array();
  for (const exec::Holder& holder : memory.holders)
    j["alive"].push_back(
        {{"step", holder.step}, {"kind", holder.is_scratch ? "scratch" : "value"}, {"bytes", holder.bytes}});
  return j.dump();
}

std::string front_text(const std::vector<artifact::MemoryPoint>& front) {
  if (front.size() < 2) return {};
  const bool is_measured = front[0].time_us >= 0;
  Table table({"bytes in all", "kernels with a choice", "instead of the plan"});
  for (const artifact::MemoryPoint& point : front)
    table.add({std::to_string(point.bytes), is_measured ? microseconds(point.time_us) : "not measured",
               point.change.empty() ? "nothing: this is the plan" : point.change});
  return fmt::format("time against device memory (--memory-budget takes the fastest that fits{}):\n{}",
                     is_measured ? "" : "; nothing was timed, the order is that of rules",
                     table.str({2}, 90));
}

std::string arena_picture(const exec::PredictedMemory& memory, const exec::Executable& code) {
  const auto largest =
      std::max_element(memory.segments.begin(), memory.segments.end(),
                       [](const auto& a, const auto& b) { return a.arena_bytes < b.arena_bytes; });
  if (largest == memory.segments.end() || largest->arena_bytes == 0) return {};
  constexpr double kWidth = 900, kHeight = 320;
  const double per_moment = kWidth / std::max(largest->num_moments, 1),
               per_byte = kHeight / static_cast<double>(largest->arena_bytes);
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n"
      "<rect x=\"0\" y=\"0\" width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"none\" stroke=\"#888\"/>\n",
      kWidth, kHeight);
  for (const exec::BoundPiece& piece : largest->pieces) {
    if (piece.bytes == 0) continue;
    const double height = std::max(0.5, static_cast<double>(piece.bytes) * per_byte);
    svg += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"#fff\" "
        "stroke-width=\"0.3\"><title>{}{}: {}, launches {} to {}</title></rect>\n",
        piece.first * per_moment, kHeight - static_cast<double>(piece.offset) * per_byte - height,
        (piece.last - piece.first + 1) * per_moment, height, piece.is_scratch ? "#d98c3f" : "#4477aa",
        escaped(code.segments[largest->segment].steps[piece.step].name), piece.is_scratch ? " (scratch)" : "",
        text_of(piece.bytes), piece.first, piece.last);
  }
  const double bound = kHeight - static_cast<double>(largest->lower_bound) * per_byte;
  svg += fmt::format(
      "<line x1=\"0\" x2=\"{:.0f}\" y1=\"{:.2f}\" y2=\"{:.2f}\" stroke=\"#b00\" stroke-dasharray=\"6 4\"/>\n",
      kWidth, bound, bound);
  return svg + "</svg>\n" +
         fmt::format(
             "<p>{} launches, arena of {}; blue: values, orange: scratch, dashed: most alive at one "
             "time ({}).</p>\n",
             largest->num_moments, text_of(largest->arena_bytes), text_of(largest->lower_bound));
}

}  // namespace thrice::report
