#include "family/template.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <cctype>
#include <sstream>

#include "family/kernel_text.h"

namespace thrice::family {

Template& Template::set(const std::string& name, const std::string& text) {
  names_[name] = text;
  return *this;
}

Template& Template::hole(const std::string& name, std::function<void()> write) {
  holes_[name] = std::move(write);
  return *this;
}

std::string Template::section(const std::string& name) const {
  std::istringstream in(kernel_text(path_));
  std::string line, out;
  bool inside = false, found = false;
  while (std::getline(in, line)) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    if (line.compare(first, 5, "//@@ ") == 0) {
      inside = line.substr(first + 5) == name;
      found = found || inside;
      continue;
    }
    if (!inside || (line.compare(first, 2, "//") == 0 && line.compare(first, 3, "//@") != 0)) continue;
    for (size_t i = first; i < line.size(); ++i) {
      if (line[i] != '$') {
        out += line[i];
        continue;
      }
      size_t end = i + 1;
      while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) || line[end] == '_'))
        ++end;
      const auto it = names_.find(line.substr(i + 1, end - i - 1));
      if (it == names_.end())
        throw Error(Code::kInternal, fmt::format("{}: no value for {}", path_, line.substr(i, end - i)));
      out += it->second;
      i = end - 1;
    }
    out += '\n';
  }
  if (!found) throw Error(Code::kInternal, fmt::format("{} has no section '{}'", path_, name));
  return out;
}

void Template::write(Emitter& e, const std::string& name) const {
  std::istringstream in(section(name));
  std::string line;
  while (std::getline(in, line)) {
    if (line.compare(0, 3, "//@") == 0) {
      const auto it = holes_.find(line.substr(3));
      if (it == holes_.end())
        throw Error(Code::kInternal, fmt::format("{}: hole {} is not filled", path_, line));
      it->second();
    } else if (line == "}") {
      e.close();
    } else if (line.size() >= 2 && line.compare(line.size() - 2, 2, " {") == 0) {
      e.open(line.substr(0, line.size() - 2));
    } else if (line == "{") {
      e.open("");
    } else {
      e.line(line);
    }
  }
}

}  // namespace thrice::family
