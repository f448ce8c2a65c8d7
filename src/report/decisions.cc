#include "report/decisions.h"

#include <fmt/format.h>

namespace thrice::report {

namespace {

constexpr size_t kMostNames = 6;

std::string names(const std::vector<std::string>& operators) {
  std::string text;
  for (size_t i = 0; i < operators.size() && i < kMostNames; ++i)
    text += fmt::format("{}{}", i ? ", " : "", operators[i]);
  if (operators.size() > kMostNames) text += fmt::format(" and {} more", operators.size() - kMostNames);
  return text;
}

}  // namespace

std::string decisions_text(const std::vector<artifact::FusionDecision>& decisions) {
  std::string text = "fusion (prices: time plus its uncertainty, of one use):\n";
  int number = 0;
  for (const artifact::FusionDecision& d : decisions) {
    text += fmt::format("{:3}. {}", ++number, names(d.operators));
    if (d.uses > 1) text += fmt::format(" ({} alike)", d.uses);
    text += fmt::format("\n     {}: {} states over {} candidate regions (all unions of up to {} operators)\n",
                        d.exact ? "exact" : "FALLBACK", d.states, d.candidates, d.complete);
    for (const artifact::FusionAlternative& a : d.alternatives) {
      text += fmt::format("     {:<11}{:10.2f} us\n", a.name, a.us);
      for (const artifact::PricedRegion& r : a.regions)
        if (r.us > 0 || r.uncertainty_us > 0)
          text += fmt::format("         {:.2f} +- {:.2f} us  {}  ({})\n", r.us, r.uncertainty_us, r.name,
                              r.source);
    }
    text += fmt::format("     why: {}\n", d.why);
  }
  return text;
}

}  // namespace thrice::report
