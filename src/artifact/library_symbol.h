// Symbols that describe a call into a vendor's library (docs/decisions/0007): fields between colons, of which
// the first names the library. A kernel of ours has no colon in its name.
#pragma once
#include <string>
#include <vector>

namespace thrice::artifact {

bool is_library_symbol(const std::string& symbol);
// The fields where the symbol is of this library; else none.
std::vector<std::string> library_fields(const std::string& symbol, const std::string& library);
// A field that is the position of a launch's buffer. Throws kCorrupt.
int buffer_position(const std::string& symbol, const std::string& field);
[[noreturn]] void refuse_symbol(const std::string& symbol, const std::string& why);  // kCorrupt

}  // namespace thrice::artifact
