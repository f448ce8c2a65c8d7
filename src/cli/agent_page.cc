#include "cli/agent_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "artifact/schedule.h"
#include "report/page.h"
#include "report/table.h"

namespace thrice::cli {
namespace {

using report::Bar;
using report::Chart;
using report::Series;

std::string trials(double value) { return std::isfinite(value) ? fmt::format("{:.0f}", value) : "never"; }

template <class Rows>
std::string trials_bars(const std::string& title, const Rows& rows) {
  std::vector<Bar> bars;
  for (const auto& row : rows) {
    const double value = row->trials_to_95.value;
    bars.push_back(
        {row->agent,
         fmt::format("{} [{}, {}], {:.0f}% got there", trials(value), trials(row->trials_to_95.low),
                     trials(row->trials_to_95.high), 100 * row->reached),
         std::isfinite(value) ? value : 0});
  }
  return report::svg_of_bars(title, bars);
}

std::vector<std::string> total_row(const flow::AgentTotal& t) {
  const auto share = [](const tune::Interval& i) {
    return fmt::format("{:.3f} ± {:.3f}", i.value, 0.5 * (i.high - i.low));
  };
  return {t.agent,
          std::to_string(t.spaces),
          share(t.score),
          share(t.at_50),
          share(t.at_100),
          share(t.at_500),
          trials(t.trials_to_95.value),
          fmt::format("{:.0f}%", 100 * t.reached),
          fmt::format("{:.2f}", t.cpu_s)};
}

std::string parameter_bars(const std::string& title,
                           const std::vector<std::pair<std::string, double>>& shares) {
  std::vector<Bar> bars;
  for (const auto& [name, share] : shares) bars.push_back({name, fmt::format("{:.0f}%", 100 * share), share});
  return bars.empty() ? std::string() : report::svg_of_bars(title, bars);
}

// Share of the variance of log time that each parameter's means explain, over what was tried of one tactic.
std::vector<std::pair<std::string, double>> explained(const std::vector<flow::Attempt>& attempts,
                                                      const std::string& tactic) {
  std::map<std::string, std::map<int64_t, std::pair<double, double>>> groups;  // sum and count by choice
  double sum = 0, squares = 0, n = 0;
  for (const flow::Attempt& a : attempts) {
    if (!a.ok || a.schedule.substr(0, a.schedule.find(' ')) != tactic) continue;
    const double cost = std::log(a.time_us);
    sum += cost;
    squares += cost * cost;
    ++n;
    for (const auto& [name, value] : artifact::Schedule::parse(a.schedule).values) {
      groups[name][value].first += cost;
      ++groups[name][value].second;
    }
  }
  std::vector<std::pair<std::string, double>> shares;
  if (n < 8) return shares;
  const double mean = sum / n, variance = squares / n - mean * mean;
  for (const auto& [name, choices] : groups) {
    double part = 0;
    for (const auto& [value, group] : choices)
      part += group.second / n * std::pow(group.first / group.second - mean, 2);
    if (variance > 0) shares.emplace_back(name, part / variance);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

}  // namespace

std::string eval_page(const flow::EvalReport& report) {
  std::string body = fmt::format(
      "<p>{} runs of each agent on each space, {} trials a run, measurements with {:.1f}% noise. Bands and "
      "brackets "
      "are 95% intervals. Score: 0 as calculated random search, 1 the optimum at once.</p>\n",
      report.repeats, report.trials, 100 * report.noise);
  std::vector<std::vector<std::string>> rows;
  std::vector<const flow::AgentTotal*> totals;
  for (const flow::AgentTotal& t : report.totals) {
    rows.push_back(total_row(t));
    totals.push_back(&t);
  }
  body += "<h2>All spaces</h2>\n" +
          report::html_table({"agent", "spaces", "score P", "best/optimum after 50", "after 100", "after 500",
                              "median trials to 95%", "runs that get there", "CPU s a run"},
                             rows) +
          trials_bars("median trials to 95% of the optimum", totals);
  for (const flow::SpaceFacts& space : report.spaces) {
    Chart chart;
    chart.title = space.name + ": best so far";
    chart.x_label = "trials";
    chart.y_label = "optimum / best so far";
    chart.log_x = true;
    std::vector<const flow::AgentOnSpace*> here;
    for (const flow::AgentOnSpace& r : report.results) {
      if (r.space != space.name) continue;
      here.push_back(&r);
      Series series;
      series.name = r.agent;
      for (size_t i = 0; i < r.moments.size(); ++i) {
        series.x.push_back(static_cast<double>(r.moments[i]));
        series.y.push_back(r.curve[i].value);
        series.low.push_back(std::max(0.0, r.curve[i].low));
        series.high.push_back(std::min(1.0, r.curve[i].high));
      }
      chart.series.push_back(std::move(series));
    }
    body +=
        fmt::format(
            "<h2>{}</h2>\n<p>{} configurations, {} of them fail; optimum {:.4g} ms, median {:.4g} ms.</p>\n",
            report::escaped(space.name), space.configurations, space.failing, space.optimum_ms,
            space.median_ms) +
        report::svg_of(chart) + trials_bars("trials to 95%", here) +
        parameter_bars("parameters: share of the variance of log time that each explains alone",
                       space.importance);
  }
  return report::html_page("thrice agent eval", body);
}

std::string optimize_page(const flow::OptimizeReport& report, const std::string& about_the_plan) {
  std::string body = fmt::format("<p>{} on {}; {} trials.", report::escaped(report.model),
                                 report::escaped(report.device), report.trials);
  if (report.best_us > 0)
    body += fmt::format(" Original {}, now {}: {:.2f}x.", report::microseconds(report.original_us),
                        report::microseconds(report.best_us), report.speedup);
  body += "</p>\n" + about_the_plan;
  std::vector<std::vector<std::string>> rows;
  for (const flow::Explored& r : report.explored)
    rows.push_back({r.name, std::to_string(r.uses), r.schedule, fmt::format("{:.1f}", r.default_us),
                    fmt::format("{:.1f}", r.best_us), std::to_string(r.attempts.size())});
  body += "<h2>What was searched</h2>\n" +
          report::html_table(
              {"region", "uses", "best schedule", "default us", "best us", "trials of this run"}, rows);
  for (const flow::Explored& r : report.explored) {
    Chart chart;
    chart.title = r.name + ": what was tried, and the best so far";
    chart.x_label = "trials of the model";
    chart.y_label = "us of one execution";
    chart.log_y = true;
    std::map<std::string, Series> tried;  // by tactic
    Series best;
    best.name = "best so far";
    best.steps = true;
    size_t failed = 0;
    for (const flow::Attempt& a : r.attempts) {
      best.x.push_back(static_cast<double>(a.trial));
      best.y.push_back(a.best_us);
      if (!a.ok) {
        ++failed;
        continue;
      }
      Series& series = tried[a.schedule.substr(0, a.schedule.find(' '))];
      series.x.push_back(static_cast<double>(a.trial));
      series.y.push_back(a.time_us);
    }
    chart.series.push_back(best);
    Chart dots = chart;
    dots.title = r.name + ": by tactic";
    dots.points = true;
    dots.series.clear();
    for (auto& [tactic, series] : tried) {
      series.name = tactic;
      dots.series.push_back(series);
    }
    body += fmt::format("<h2>{}</h2>\n<p>{} tried, {} of them failed.</p>\n", report::escaped(r.name),
                        r.attempts.size(), failed) +
            report::svg_of(chart) + (dots.series.empty() ? std::string() : report::svg_of(dots)) +
            parameter_bars("parameters of " + r.schedule.substr(0, r.schedule.find(' ')) +
                               ": share of the variance of log time",
                           explained(r.attempts, r.schedule.substr(0, r.schedule.find(' '))));
  }
  for (const std::string& note : report.notes) body += "<p>note: " + report::escaped(note) + "</p>\n";
  return report::html_page("thrice optimize", body);
}

}  // namespace thrice::cli
