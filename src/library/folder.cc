#include "library/folder.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"

namespace thrice::library {

namespace fs = std::filesystem;

namespace {

std::string head(const std::string& pattern) {
  return fmt::format(
      "# Operators of pattern '{}'; docs/library.md says what the columns are. Written by `thrice library "
      "import`.\n"
      "# id | kind | dtype | pattern | length | operands | nodes | extents | features | networks\n",
      pattern);
}

}  // namespace

std::vector<Entry> read_folder(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(folder, error))
    if (file.path().extension() == ".txt") files.push_back(file.path());
  if (error)
    throw Error(Code::kIo, fmt::format("cannot read the library's folder '{}': {}; name it with --folder",
                                       folder, error.message()));
  std::sort(files.begin(), files.end());
  std::vector<Entry> entries;
  std::map<std::string, std::string> ids, identities;  // -> where it stands
  for (const fs::path& file : files) {
    std::istringstream in(read_text(file.string()));
    size_t number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (line.empty() || line[0] == '#') continue;
      const std::string where = fmt::format("{}:{}", file.filename().string(), number);
      try {
        entries.push_back(from_line(line));
      } catch (const Error& wrong) {
        throw Error(wrong.code(), fmt::format("{}: {}", where, wrong.what()));
      }
      const Entry& e = entries.back();
      for (auto* seen : {&ids, &identities}) {
        const auto [it, is_new] = seen->emplace(seen == &ids ? e.id : e.identity(), where);
        if (!is_new)
          throw Error(
              Code::kInvalidArgument,
              fmt::format("{}: operator {} stands already at {}; remove one line", where, e.id, it->second));
      }
    }
  }
  return entries;
}

size_t merge(std::vector<Entry>& into, const std::vector<Entry>& more) {
  std::map<std::string, size_t> ids, identities;
  for (size_t i = 0; i < into.size(); ++i) {
    ids.emplace(into[i].id, i);
    identities.emplace(into[i].identity(), i);
  }
  size_t added = 0;
  for (const Entry& e : more) {
    auto same = ids.find(e.id);
    if (same == ids.end()) same = identities.find(e.identity());
    if (same == ids.end() || same == identities.end()) {
      ids.emplace(e.id, into.size());
      identities.emplace(e.identity(), into.size());
      into.push_back(e);
      ++added;
      continue;
    }
    Entry& known = into[same->second];
    for (const std::string& network : e.networks)
      if (std::find(known.networks.begin(), known.networks.end(), network) == known.networks.end())
        known.networks.push_back(network);
    std::sort(known.networks.begin(), known.networks.end());
    known.variable |= e.variable;
    for (const auto& [name, range] : e.extents) {
      Range& r = known.extents.try_emplace(name, range).first->second;
      r.low = std::min(r.low, range.low);
      r.high = std::max(r.high, range.high);
    }
  }
  return added;
}

void write_folder(const std::string& folder, const std::vector<Entry>& entries) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(Code::kIo, fmt::format("cannot create folder '{}': {}", folder, error.message()));
  for (const std::string& pattern : pattern_names()) {
    std::vector<const Entry*> here;
    for (const Entry& e : entries)
      if (e.pattern == pattern) here.push_back(&e);
    const std::string path = folder + "/" + pattern + ".txt";
    if (here.empty() && !fs::exists(path)) continue;
    std::sort(here.begin(), here.end(), [](const Entry* a, const Entry* b) { return a->id < b->id; });
    std::string text = head(pattern);
    for (const Entry* e : here) text += to_line(*e) + "\n";
    write_file_atomic(path, text);
  }
}

}  // namespace thrice::library
