// Nesting of a JSON text, measured before it is parsed: copies of parsed values recurse once a level, so that
// a hostile file could exhaust the stack.
#pragma once
#include <string_view>

namespace thrice {

inline bool nested_deeper_than(std::string_view json, int limit) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace thrice
