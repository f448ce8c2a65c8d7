#include "base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

namespace thrice {

SharedLibrary::SharedLibrary(const std::string& path)
    : handle_(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {}

void* SharedLibrary::address(const char* name) {
  void* found = handle_ ? dlsym(handle_, name) : nullptr;
  if (!found && missing_.empty()) missing_ = name;
  return found;
}

LibraryPaths library_paths(const char* variable, std::vector<std::string> usual,
                           const std::string& not_found) {
  const char* named = getenv(variable);
  if (!named || !*named)
    return {std::move(usual), fmt::format("{}, or set {} to the library", not_found, variable)};
  if (std::string(named) == "off") return {{}, fmt::format("switched off by {}", variable)};
  return {{named}, fmt::format("{} is '{}', which is no library that can be opened", variable, named)};
}

}  // namespace thrice
