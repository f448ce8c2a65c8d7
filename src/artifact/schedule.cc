#include "artifact/schedule.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <charconv>

namespace thrice::artifact {
namespace {

const std::pair<std::string, int64_t>* find(const Schedule& schedule, const std::string& name) {
  for (const auto& entry : schedule.values)
    if (entry.first == name) return &entry;
  return nullptr;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace

int64_t Schedule::get(const std::string& name) const {
  const auto* entry = find(*this, name);
  if (!entry) throw Error(Code::kInternal, fmt::format("schedule '{}' has no parameter '{}'", str(), name));
  return entry->second;
}

int64_t Schedule::get(const std::string& name, int64_t otherwise) const {
  const auto* entry = find(*this, name);
  return entry ? entry->second : otherwise;
}

void Schedule::set(const std::string& name, int64_t value) {
  for (auto& entry : values) {
    if (entry.first != name) continue;
    entry.second = value;
    return;
  }
  values.emplace_back(name, value);
}

std::string Schedule::str() const {
  std::string text = fmt::format("{}/{}", family, tactic);
  for (const auto& [name, value] : values) text += fmt::format(" {}={}", name, value);
  return text;
}

Schedule Schedule::parse(const std::string& text) {
  const auto corrupt = [&](const char* what) {
    throw Error(Code::kCorrupt, fmt::format("'{}' is no schedule: {}", text, what));
  };
  Schedule schedule;
  const std::string_view all = text;
  const std::string_view head = all.substr(0, all.find(' '));
  const size_t slash = head.find('/');
  if (slash == std::string_view::npos) corrupt("it does not begin with family/tactic");
  schedule.family = head.substr(0, slash);
  schedule.tactic = head.substr(slash + 1);
  if (!is_name(schedule.family) || !is_name(schedule.tactic)) corrupt("family or tactic is no name");
  size_t at = head.size();
  while (at < all.size()) {
    const size_t end = std::min(all.find(' ', at + 1), all.size());
    const std::string_view item = all.substr(at + 1, end - at - 1);
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || !is_name(item.substr(0, equals)))
      corrupt("a parameter is not name=number");
    int64_t value = 0;
    const char* last = item.data() + item.size();
    const auto [stop, error] = std::from_chars(item.data() + equals + 1, last, value);
    if (error != std::errc() || stop != last) corrupt("a parameter is not name=number");
    const std::string name(item.substr(0, equals));
    if (find(schedule, name)) corrupt("a parameter stands twice");
    schedule.values.emplace_back(name, value);
    at = end;
  }
  return schedule;
}

int64_t ScheduleSpace::size() const {
  int64_t total = 0;
  for (const TacticSpace& tactic : tactics) {
    int64_t product = 1;
    for (const Parameter& p : tactic.parameters)
      if (__builtin_mul_overflow(product, static_cast<int64_t>(p.choices.size()), &product)) return INT64_MAX;
    if (__builtin_add_overflow(total, product, &total)) return INT64_MAX;
  }
  return total;
}

}  // namespace thrice::artifact
