// Self-contained HTML pages with charts as inline SVG: no script, no font, no address.
#pragma once
#include <string>
#include <vector>

namespace thrice::report {

std::string escaped(const std::string& text);  // for HTML

struct Series {
  std::string name;
  std::vector<double> x, y;       // as many; what is not finite is left out
  std::vector<double> low, high;  // a band around y; may be empty
  bool steps = false;             // stays until the next x
};
struct Chart {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false, points = false;  // points: dots instead of lines
  double y_low = 0, y_high = 0;                       // both 0: by the data
  std::vector<Series> series;
};
std::string svg_of(const Chart& chart);

struct Bar {
  std::string name, text;  // text: at the bar's end
  double value = 0;        // from 0
};
std::string svg_of_bars(const std::string& title, const std::vector<Bar>& bars);

// Cells are escaped; the first column is to the left.
std::string html_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);
std::string html_page(const std::string& title, const std::string& body);

}  // namespace thrice::report
