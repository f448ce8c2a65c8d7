#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace thrice::report {
namespace {

constexpr int kWidth = 560, kHeight = 300, kLeft = 62, kRight = 12, kTop = 28, kBottom = 40;
constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd",
                                    "#8c564b", "#e377c2", "#17becf", "#7f7f7f", "#bcbd22"};

std::string tick_text(double v) {
  const double size = std::abs(v);
  if (size > 0 && (size < 1e-3 || size >= 1e6)) return fmt::format("{:.0e}", v);
  return fmt::format("{:.4g}", v);
}

// A linear or logarithmic scale from values to pixels.
struct Axis {
  double low = 0, high = 1;
  bool log = false;
  double from = 0, to = 1;
  double at(double v) const {
    const double share = log ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return from + share * (to - from);
  }
  bool takes(double v) const { return std::isfinite(v) && (!log || v > 0); }
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (log) {
      for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high * 1.0001; decade *= 10)
        for (const double part : {1.0, 2.0, 5.0})
          if (decade * part >= low * 0.9999 && decade * part <= high * 1.0001)
            result.push_back(decade * part);
      return result;
    }
    const double rough = (high - low) / 5, decade = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough / decade < 1.5 ? decade : rough / decade < 3.5 ? 2 * decade : 5 * decade;
    for (double v = std::ceil(low / step - 1e-9) * step; v <= high + 1e-9 * step; v += step)
      result.push_back(std::abs(v) < 1e-12 ? 0 : v);
    return result;
  }
};

void stretch(Axis& axis, const std::vector<double>& values) {
  for (const double v : values) {
    if (!axis.takes(v)) continue;
    axis.low = std::min(axis.low, v);
    axis.high = std::max(axis.high, v);
  }
}
void settle(Axis& axis) {
  if (!(axis.low <= axis.high)) axis.low = axis.log ? 1 : 0, axis.high = axis.log ? 10 : 1;
  if (axis.low == axis.high) {
    axis.low = axis.log ? axis.low / 2 : axis.low - 0.5;
    axis.high = axis.log ? axis.high * 2 : axis.high + 0.5;
  }
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string svg_of(const Chart& chart) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Axis x{kInfinity, -kInfinity, chart.log_x, kLeft, kWidth - kRight};
  Axis y{kInfinity, -kInfinity, chart.log_y, kHeight - kBottom, kTop};
  for (const Series& s : chart.series) {
    stretch(x, s.x);
    for (const auto* values : {&s.y, &s.low, &s.high}) stretch(y, *values);
  }
  if (chart.y_low != 0 || chart.y_high != 0) {
    y.low = chart.y_low;
    y.high = chart.y_high;
  }
  settle(x);
  settle(y);
  const double bottom = kHeight - kBottom;
  std::string svg = fmt::format(
      "<svg role=\"img\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\"><title>{}</title><text x=\"{}\" "
      "y=\"16\" "
      "class=\"t\">{}</text>\n",
      kWidth, kHeight + 18, kWidth, kHeight + 18, escaped(chart.title), kLeft, escaped(chart.title));
  for (const double v : x.ticks())
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" class=\"g\"/><text x=\"{0:.1f}\" "
        "y=\"{3}\" class=\"x\">{4}</text>\n",
        x.at(v), kTop, bottom, bottom + 14, tick_text(v));
  for (const double v : y.ticks())
    svg += fmt::format(
        "<line x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\" class=\"g\"/><text x=\"{3}\" "
        "y=\"{4:.1f}\" class=\"y\">{5}</text>\n",
        y.at(v), kLeft, kWidth - kRight, kLeft - 5, y.at(v) + 4, tick_text(v));
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" class=\"x\">{}</text><text transform=\"translate(12,{}) rotate(-90)\" "
      "class=\"x\">{}</text>\n",
      (kLeft + kWidth - kRight) / 2, bottom + 30, escaped(chart.x_label), (kTop + bottom) / 2,
      escaped(chart.y_label));
  const auto place = [&](double vx, double vy) {
    return fmt::format("{:.1f},{:.1f} ", x.at(vx), std::clamp(y.at(vy), double{kTop}, bottom));
  };
  double legend = kLeft;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& s = chart.series[i];
    const char* colour = kColours[i % std::size(kColours)];
    std::string band, back, line;
    double last = 0;
    bool has_last = false;
    for (size_t k = 0; k < s.x.size(); ++k) {
      if (!x.takes(s.x[k]) || !y.takes(s.y[k])) continue;
      if (chart.points) {
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" fill=\"{}\" fill-opacity=\"0.6\"/>",
                           x.at(s.x[k]), std::clamp(y.at(s.y[k]), double{kTop}, bottom), colour);
        continue;
      }
      if (s.steps && has_last) line += place(s.x[k], last);
      line += place(s.x[k], s.y[k]);
      last = s.y[k];
      has_last = true;
      if (k < s.low.size() && k < s.high.size() && y.takes(s.low[k]) && y.takes(s.high[k])) {
        band += place(s.x[k], s.high[k]);
        back = place(s.x[k], s.low[k]) + back;
      }
    }
    if (!band.empty())
      svg +=
          fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n", band, back, colour);
    if (!line.empty())
      svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", line,
                         colour);
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.0f}\" y=\"{}\" "
        "class=\"l\">{}</text>\n",
        legend, kHeight + 2, colour, legend + 13, kHeight + 11, escaped(s.name));
    legend += 22 + 6.3 * static_cast<double>(s.name.size());
  }
  return svg + "</svg>\n";
}

std::string svg_of_bars(const std::string& title, const std::vector<Bar>& bars) {
  constexpr int kRow = 20, kName = 190;
  double most = 0;
  for (const Bar& bar : bars) most = std::max(most, bar.value);
  const int height = kTop + kRow * static_cast<int>(bars.size()) + 6;
  std::string svg = fmt::format(
      "<svg role=\"img\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\"><title>{2}</title><text "
      "x=\"4\" y=\"16\" "
      "class=\"t\">{2}</text>\n",
      kWidth, height, escaped(title));
  int row = kTop;
  for (const Bar& bar : bars) {
    const double width = most > 0 && bar.value > 0 ? bar.value / most * (kWidth - kName - 110) : 0;
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" class=\"y\">{}</text><rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" "
        "height=\"13\" fill=\"{}\"/><text x=\"{:.1f}\" y=\"{}\" class=\"l\">{}</text>\n",
        kName - 6, row + 11, escaped(bar.name), kName, row, width, kColours[0], kName + width + 5, row + 11,
        escaped(bar.text));
    row += kRow;
  }
  return svg + "</svg>\n";
}

std::string html_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table><tr>";
  for (const std::string& cell : header) html += "<th>" + escaped(cell) + "</th>";
  html += "</tr>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + escaped(cell) + "</td>";
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><style>\n"
      "body{{font:14px sans-serif;margin:24px;max-width:1180px;color:#222}}svg{{margin:4px 8px 12px 0}}\n"
      "table{{border-collapse:collapse;margin:10px 0}}td,th{{padding:2px 9px;border-bottom:1px solid "
      "#ddd;text-align:right}}td:first-child,th:first-child{{text-align:left}}\n"
      ".t{{font:bold 13px sans-serif}}.x{{font:11px sans-serif;text-anchor:middle}}.y{{font:11px "
      "sans-serif;text-anchor:end}}.l{{font:11px sans-serif}}.g{{stroke:#e4e4e4}}\n"
      "</style></head><body>\n<h1>{0}</h1>\n{1}</body></html>\n",
      escaped(title), body);
}

}  // namespace thrice::report
