#include "family/kernel_text.h"

#include <fmt/format.h>
#include <thrice/status.h>

namespace thrice::family {

const std::string& kernel_text(const std::string& path) {
  for (const auto& text : kernel_texts())
    if (text.path == path) return text.text;
  throw Error(Code::kInternal, fmt::format("no kernel text '{}' is built in", path));
}

}  // namespace thrice::family
