#include "tune/agents/tuned.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <sstream>

#include "tune/shipped.h"

namespace thrice::tune {

std::map<std::string, double> tuned_knobs(const std::string& agent, int fold) {
  std::map<std::string, double> knobs;
  std::istringstream lines(shipped_rivals());
  std::string name, knob;
  int of = 0;
  double value = 0;
  while (lines >> name >> of >> knob >> value)
    if (name == agent && of == fold) knobs[knob] = value;
  if (!lines.eof()) throw Error(Code::kCorrupt, "data/agent/rivals.txt: a line is 'AGENT FOLD KNOB NUMBER'");
  return knobs;
}

double tuned_knob(const std::string& agent, const std::string& knob) {
  const std::map<std::string, double> knobs = tuned_knobs(agent, 0);
  const auto it = knobs.find(knob);
  if (it == knobs.end())
    throw Error(Code::kInternal, fmt::format("data/agent/rivals.txt lacks '{} 0 {}'", agent, knob));
  return it->second;
}

}  // namespace thrice::tune
