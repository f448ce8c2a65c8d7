// Fills hand-read kernel templates (kernels/**): the text stays readable as a kernel, the emitter keeps track
// of its scopes.
//
// In a template, $NAME is replaced; a line `//@name` is a hole that a function writes; a line `//@@ name`
// begins a section; other comment lines are for readers of the file and are left out.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "family/emitter.h"

namespace thrice::family {

class Template {
 public:
  explicit Template(std::string path) : path_(std::move(path)) {}
  Template& set(const std::string& name, const std::string& text);
  Template& set(const std::string& name, int64_t value) { return set(name, std::to_string(value)); }
  Template& hole(const std::string& name, std::function<void()> write);

  // The section with names replaced; throws kInternal for an unknown section or name.
  std::string section(const std::string& name) const;
  // Writes the section through the emitter: a line that ends in { opens a scope, a line } closes it.
  void write(Emitter& e, const std::string& name) const;

 private:
  std::string path_;  // below kernels/
  std::map<std::string, std::string> names_;
  std::map<std::string, std::function<void()>> holes_;
};

}  // namespace thrice::family
