// Libraries that are opened at run time: none is needed to build, and one that is missing is a sentence, no
// failure to start.
#pragma once
#include <string>
#include <vector>

namespace thrice {

// An opened library. Never closed: it may have threads of its own, and other parts of the process may use it
// too.
class SharedLibrary {
 public:
  SharedLibrary() = default;
  explicit SharedLibrary(const std::string& path);  // empty where it cannot be opened
  explicit operator bool() const { return handle_ != nullptr; }
  // Sets `function`; false where the library lacks it, and the first such name is kept in missing().
  template <class F>
  bool find(const char* name, F& function) {
    function = reinterpret_cast<F>(address(name));
    return function != nullptr;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* address(const char* name);
  void* handle_ = nullptr;
  std::string missing_;
};

// Where to look for an optional library: the file that `variable` of the environment names and nothing else,
// nowhere where it says "off", else `usual`. `reason`: what to say when none of the paths opens.
struct LibraryPaths {
  std::vector<std::string> paths;
  std::string reason;
};
LibraryPaths library_paths(const char* variable, std::vector<std::string> usual,
                           const std::string& not_found);

}  // namespace thrice
