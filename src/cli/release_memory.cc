#include "cli/release_memory.h"

#include <cstdlib>
#include <sstream>

#include "cli/model_options.h"
#include "flow/whole_model.h"

namespace thrice::cli {

ReleaseMemory release_memory(const release::Release& release, const Arguments& arguments) {
  ir::Bindings bindings = bindings_for(*release.graph, arguments, nullptr);
  if (!arguments.has("--dims")) {
    std::istringstream timed(release.manifest.timed_at);
    for (std::string word; timed >> word;)
      if (const size_t at = word.find('='); at != std::string::npos && bindings.count(word.substr(0, at)))
        bindings[word.substr(0, at)] = std::strtoll(word.c_str() + at + 1, nullptr, 10);
  }
  ReleaseMemory found;
  found.extents = flow::bindings_text(bindings);
  found.code = exec::resolve_plan(release.graph, release.plan);
  found.memory = exec::predict_memory(*found.code, bindings);
  return found;
}

}  // namespace thrice::cli
