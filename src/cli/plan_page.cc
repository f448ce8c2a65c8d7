#include "cli/plan_page.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cmath>

#include "cli/release_memory.h"
#include "report/memory.h"
#include "report/page.h"
#include "report/table.h"

namespace thrice::cli {
namespace {

constexpr size_t kHottest = 15;

// The regions that take most of the time.
std::string hot_spots(const flow::OptimizeReport& report) {
  double all = 0;
  for (const flow::RegionReport& r : report.regions) all += std::max(0.0, r.now_us);
  if (all <= 0) return {};
  std::vector<report::Bar> bars;
  for (const flow::RegionReport& r : report.regions) {
    if (bars.size() == kHottest) break;
    bars.push_back({r.uses > 1 ? fmt::format("{} x{}", r.name, r.uses) : r.name,
                    fmt::format("{:.1f} us, {:.0f}%", r.now_us, 100 * r.now_us / all), r.now_us});
  }
  return "<h2>Where the time goes</h2>\n" + report::svg_of_bars("us of one execution of the model", bars);
}

// Operations a byte against operations a second: a kernel under the slope waits for memory, under the flat
// part for arithmetic.
std::string roofline(const flow::OptimizeReport& report) {
  report::Chart chart;
  chart.title = "each region beside the roof";
  chart.x_label = "operations a byte";
  chart.y_label = "GFLOP/s";
  chart.log_x = chart.log_y = chart.points = true;
  report::Series before, after;
  before.name = "operators one by one";
  after.name = "now";
  for (const flow::RegionReport& r : report.regions) {
    if (!(r.flops > 0) || !(r.bytes > 0)) continue;
    const auto add = [&](report::Series& series, double us) {
      if (!(us > 0)) return;
      series.x.push_back(r.flops / r.bytes);
      series.y.push_back(r.flops * r.uses / us / 1e3);
    };
    add(before, r.original_us);
    add(after, r.now_us);
  }
  if (after.x.empty()) return {};
  if (report.bandwidth_gbs > 0) {
    const auto [low, high] = std::minmax_element(after.x.begin(), after.x.end());
    const auto roof = [&, low = *low, high = *high](const char* name, double peak) {
      report::Series series;
      series.name = name;
      constexpr int kDots = 80;
      for (int i = 0; i <= kDots && peak > 0; ++i) {
        const double x = low / 2 * std::pow(4 * high / low, i / double{kDots});
        series.x.push_back(x);
        series.y.push_back(std::min(peak, x * report.bandwidth_gbs));
      }
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    };
    roof("float32 roof", report.gflops);
    if (report.product_gflops > report.gflops) roof("roof of products", report.product_gflops);
  }
  chart.series.push_back(std::move(before));
  chart.series.push_back(std::move(after));
  return "<h2>Roofline</h2>\n" + report::svg_of(chart) +
         "<p>Bytes are those of operands and results, each once. Above the roof: what it reads lay in a "
         "cache, "
         "or the probed peaks fall short.</p>\n";
}

std::string decisions(const flow::OptimizeReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const flow::RegionReport& r : report.regions)
    rows.push_back(
        {r.name, std::to_string(r.uses), r.schedule,
         r.original_us >= 0 ? fmt::format("{:.1f}", r.original_us) : "-", fmt::format("{:.1f}", r.now_us),
         r.original_us > 0 ? fmt::format("{:.2f}x", r.original_us / r.now_us) : "-",
         r.light_share >= 0 ? fmt::format("{:.0f}%", 100 * r.light_share) : "-", std::to_string(r.trials)});
  if (rows.empty()) return {};
  return "<h2>What was decided</h2>\n" +
         report::html_table({"region", "uses", "schedule", "operators one by one, us", "now us", "speed-up",
                             "of light", "trials"},
                            rows);
}

std::string memory(const flow::OptimizeReport& report, const Arguments& arguments) {
  if (report.release.empty()) return {};
  const ReleaseMemory found = release_memory(release::read_release(report.release), arguments);
  return "<h2>Memory</h2>\n<pre>" + report::escaped(report::memory_text(found.memory, found.extents)) +
         "</pre>\n" + report::arena_picture(found.memory, *found.code);
}

}  // namespace

std::string plan_sections(const flow::OptimizeReport& report, const Arguments& arguments) {
  return hot_spots(report) + roofline(report) + memory(report, arguments) + decisions(report);
}

}  // namespace thrice::cli
