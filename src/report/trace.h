// Perfetto / Chrome trace of one run.
#pragma once
#include <string>
#include <vector>

namespace thrice::report {

struct TraceSpan {
  std::string name, detail;
  double duration_us = 0;
};
// JSON in the trace-event format (https://ui.perfetto.dev opens it): spans one after the other on one track,
// in order.
std::string perfetto_trace(const std::string& track, const std::vector<TraceSpan>& spans);

}  // namespace thrice::report
