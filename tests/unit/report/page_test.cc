// Would catch: a page that needs a network, text of a user that becomes markup, a chart that breaks on
// infinite or missing numbers.
#include "report/page.h"

#include <gtest/gtest.h>

#include <limits>

namespace thrice::report {
namespace {

TEST(Page, StandsAloneAndEscapes) {
  Chart chart;
  chart.title = "a <b> & \"c\"";
  chart.log_x = true;
  chart.series.push_back({"<script>",
                          {0, 1, 10, 100},
                          {1, std::numeric_limits<double>::infinity(), 0.5, 0.7},
                          {0.9, 0.9, 0.4, 0.6},
                          {1, 1, 0.6, 0.8}});
  const std::string page =
      html_page("t<i>tle", svg_of(chart) + svg_of_bars("bars", {{"x", "1", 1}, {"y", "none", 0}}) +
                               html_table({"h"}, {{"<td>"}}));
  for (const char* bad : {"<script>", "<b>", "t<i>tle", "http", "src=", "inf", "nan"})
    EXPECT_EQ(page.find(bad), std::string::npos) << bad;
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("polyline"), std::string::npos);
  EXPECT_NE(page.find("polygon"), std::string::npos) << "the band of the interval";
}

TEST(Page, NothingIsAChartToo) {
  EXPECT_NE(svg_of({}).find("</svg>"), std::string::npos);
  Chart one;
  one.log_y = true;
  one.series.push_back({"s", {1}, {3}, {}, {}});
  EXPECT_EQ(svg_of(one).find("nan"), std::string::npos);
  EXPECT_NE(svg_of_bars("none", {}).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace thrice::report
