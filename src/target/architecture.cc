#include "target/architecture.h"

#include <cctype>

namespace thrice::target {
namespace {

struct Parts {
  int number = -1;  // 90; -1: no name of an architecture
  char suffix = 0;  // 'a', 'f' or none
};
Parts parts_of(const std::string& name, const std::string& prefix = "sm_") {
  if (name.rfind(prefix, 0) != 0) return {};
  size_t at = prefix.size();
  int number = 0;
  for (; at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) && number < 10000; ++at)
    number = 10 * number + (name[at] - '0');
  if (at < prefix.size() + 2 || at + 1 < name.size()) return {};
  return {number, at < name.size() ? name[at] : '\0'};
}

}  // namespace

bool cubin_runs_on(const std::string& built_for, const std::string& card) {
  if (built_for == card) return true;
  const Parts code = parts_of(built_for), here = parts_of(card);
  return code.number >= 0 && here.number >= 0 && code.suffix != 'a' && code.number / 10 == here.number / 10 &&
         code.number <= here.number;
}

bool ptx_runs_on(const std::string& built_for, const std::string& card) {
  const Parts code = parts_of(built_for, "compute_"), here = parts_of(card);
  return code.number >= 0 && code.suffix == 0 && code.number <= here.number;
}

std::string oldest_virtual(const std::vector<std::string>& architectures) {
  int oldest = -1;
  for (const std::string& name : architectures)
    if (const int number = parts_of(name).number; number >= 0 && (oldest < 0 || number < oldest))
      oldest = number;
  return oldest < 0 ? "" : "compute_" + std::to_string(oldest);
}

}  // namespace thrice::target
