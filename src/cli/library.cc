// thrice library: operators of real networks, and the best schedules known of them.
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/session_options.h"
#include "flow/search.h"
#include "frontend/import.h"
#include "library/extract.h"
#include "library/folder.h"
#include "library/memory.h"
#include "report/table.h"
#include "transform/transform.h"

namespace thrice::cli {

namespace {

using library::Entry;
using nlohmann::json;

struct Known {
  Entry entry;
  std::set<std::string> splits;
};

std::vector<std::string> words(const std::string& text, char by) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t at = std::min(text.find(by, from), text.size());
    if (at > from) parts.push_back(text.substr(from, at - from));
    from = at + 1;
  }
  return parts;
}

// What the store holds, narrowed by the flags.
std::vector<Known> selected(const Arguments& arguments, const store::Store& store) {
  std::vector<Known> all;
  const auto wanted = [&](const char* flag, const std::string& value) {
    return !arguments.has(flag) || *arguments.get(flag) == value;
  };
  for (const auto& row : store.operators()) {
    Known k{library::from_line(row.line), {}};
    for (const std::string& split : words(row.splits, ',')) k.splits.insert(split);
    const Entry& e = k.entry;
    const auto network = arguments.get("--network");
    const auto split = arguments.get("--split");
    if (wanted("--kind", e.kind) && wanted("--pattern", e.pattern) && wanted("--dtype", e.dtype) &&
        wanted("--length", e.variable ? "variable" : "fixed") &&
        (!network || std::count(e.networks.begin(), e.networks.end(), *network) > 0) &&
        (!split || k.splits.count(*split)))
      all.push_back(std::move(k));
  }
  if (all.empty() && store.operators().empty())
    throw Error(
        Code::kNotFound,
        fmt::format("the store '{}' holds no operators yet; load the repository's with: thrice library "
                    "update --folder library/operators",
                    store.path()));
  return all;
}

json to_json(const Known& k) {
  const Entry& e = k.entry;
  json j = {{"id", e.id},           {"kind", e.kind},           {"dtype", e.dtype},
            {"pattern", e.pattern}, {"operands", e.operands},   {"length", e.variable ? "variable" : "fixed"},
            {"nodes", e.nodes},     {"features", e.features},   {"networks", e.networks},
            {"splits", k.splits},   {"extents", json::object()}};
  for (const auto& [name, r] : e.extents)
    j["extents"][name] = {{"low", r.low}, {"high", r.high}, {"typical", r.typical}};
  return j;
}

std::string device_name(const store::Store& store, const std::string& environment) {
  const json j = json::parse(store.environment_description(environment), nullptr, false);
  return j.is_object() ? j.value("name", environment) : environment;
}

int list(const Arguments& arguments, const store::Store& store) {
  const std::vector<Known> all = selected(arguments, store);
  if (arguments.has("--json")) {
    json j = json::array();
    for (const Known& k : all) j.push_back(to_json(k));
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  report::Table table({"id", "kind", "dtype", "pattern", "length", "operands", "networks"});
  for (const Known& k : all)
    table.add({k.entry.id, k.entry.kind, k.entry.dtype, k.entry.pattern,
               k.entry.variable ? "variable" : "fixed", k.entry.operands,
               fmt::format("{}", fmt::join(k.entry.networks, ","))});
  fmt::print("{}{} operators\n", table.str({0, 1, 2, 3, 4, 5, 6}, 44), all.size());
  return 0;
}

int show(const Arguments& arguments, const store::Store& store) {
  const auto id = arguments.get("MODEL");
  if (!id)
    throw Error(Code::kInvalidArgument,
                "library show needs an operator's id or its beginning: thrice library show 3f2a");
  std::vector<Known> all = selected(arguments, store);
  std::erase_if(all, [&](const Known& k) { return k.entry.id.rfind(*id, 0) != 0; });
  if (all.empty())
    throw Error(Code::kNotFound,
                fmt::format("no operator's id begins with '{}'; thrice library list shows them", *id));
  const std::vector<store::Store::OperatorBest> bests = store.bests();
  json out = json::array();
  for (const Known& k : all) {
    json j = to_json(k);
    j["best"] = json::array();
    std::vector<std::pair<double, const Entry*>> near;
    for (const auto& b : bests)
      if (b.id == k.entry.id)
        j["best"].push_back({{"device", device_name(store, b.environment)},
                             {"shape", b.shape},
                             {"schedule", b.schedule},
                             {"time_us", b.time_us}});
    const std::vector<Known> others = selected({}, store);
    for (const Known& o : others)
      if (const double far = library::distance(k.entry, o.entry);
          o.entry.id != k.entry.id && far <= library::kFar)
        near.emplace_back(far, &o.entry);
    std::stable_sort(near.begin(), near.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (near.size() > 3) near.resize(3);
    j["nearest"] = json::array();
    for (const auto& [far, e] : near)
      j["nearest"].push_back(
          {{"id", e->id}, {"kind", e->kind}, {"operands", e->operands}, {"distance", far}});
    out.push_back(j);
    if (arguments.has("--json")) continue;
    fmt::print("{}\n", library::to_line(k.entry));
    for (const auto& b : j["best"])
      fmt::print("  best on {}{}: {:.1f} us, {}\n", b["device"].get<std::string>(),
                 b["shape"].get<std::string>().empty() ? "" : " at " + b["shape"].get<std::string>(),
                 b["time_us"].get<double>(), b["schedule"].get<std::string>());
    for (const auto& n : j["nearest"])
      fmt::print("  near ({:.2f}): {} {} {}\n", n["distance"].get<double>(), n["id"].get<std::string>(),
                 n["kind"].get<std::string>(), n["operands"].get<std::string>());
  }
  if (arguments.has("--json")) fmt::print("{}\n", out.dump(2));
  return 0;
}

int stats(const Arguments& arguments, const store::Store& store) {
  const std::vector<Known> all = selected(arguments, store);
  std::map<std::string, std::map<std::string, int64_t>> counts;
  for (const Known& k : all) {
    ++counts["pattern"][k.entry.pattern];
    ++counts["kind"][k.entry.kind];
    ++counts["dtype"][k.entry.dtype];
    ++counts["length"][k.entry.variable ? "variable" : "fixed"];
    for (const std::string& network : k.entry.networks) ++counts["network"][network];
    for (const std::string& split : k.splits) ++counts["split"][split];
  }
  std::set<std::string> identities, tuned;
  for (const Known& k : all) identities.insert(k.entry.identity());
  for (const auto& b : store.bests()) tuned.insert(b.id);
  const auto with_best =
      std::count_if(all.begin(), all.end(), [&](const Known& k) { return tuned.count(k.entry.id); });
  if (arguments.has("--json")) {
    json j = counts;
    j["operators"] = all.size();
    j["distinct"] = identities.size();
    j["with_best"] = with_best;
    j["bests"] = store.bests().size();
    fmt::print("{}\n", j.dump(2));
    return 0;
  }
  fmt::print("{} operators, {} of them distinct, {} with a best schedule; {} best schedules in all\n",
             all.size(), identities.size(), with_best, store.bests().size());
  for (const auto& [what, rows] : counts) {
    std::string line;
    for (const auto& [name, n] : rows) line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, n);
    fmt::print("{}: {}\n", what, line);
  }
  return 0;
}

library::Range parse_range(const std::string& text) {
  // The form of an entry's own column: read there.
  const size_t equals = text.find('=');
  try {
    if (equals == std::string::npos) throw Error(Code::kInvalidArgument, "no '='");
    return library::from_line(fmt::format("{0:016x} | k | f32 | row | fixed | - | n | {1} | - | x", 0, text))
        .extents.at(text.substr(0, equals));
  } catch (const Error&) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("--range: '{}' is not NAME=LOW..HIGH@TYPICAL, such as sequence=1..512@128", text));
  }
}

int import(const Arguments& arguments, store::Store& store) {
  const auto model = arguments.get("MODEL");
  if (!model)
    throw Error(Code::kInvalidArgument, "library import needs a model: thrice library import model.onnx");
  library::ModelRanges ranges;
  for (const std::string& text : arguments.all("--range"))
    ranges.symbols[text.substr(0, text.find('='))] = parse_range(text);
  ranges.sample_symbols = {"batch", "batch_size", "N"};
  for (const std::string& text : arguments.all("--samples"))
    for (const std::string& name : words(text, ',')) ranges.sample_symbols.insert(name);
  for (const std::string& name : ranges.sample_symbols)
    ranges.symbols.try_emplace(name, library::Range{1, 64, 1});

  frontend::ImportOptions import = import_options(arguments);
  import.random_weights = true;  // structures without weights are what is asked for
  ir::Graph graph = frontend::import_model(*model, import);
  transform::run_transforms(graph, {});
  std::filesystem::path file(*model);
  if (file.stem() == "model" && file.has_parent_path()) file = file.parent_path();
  const std::string name = arguments.get("--name", file.stem().string());
  if (name.empty() || name.find_first_of(" ,|\n") != std::string::npos)
    throw Error(
        Code::kInvalidArgument,
        fmt::format("a network's name has no blanks, commas or bars, and '{}' does; name it with --name",
                    name));
  const std::vector<Entry> found = library::operators_of(graph, name, ranges);

  std::vector<Entry> known;
  const auto folder = arguments.get("--folder");
  if (folder && std::filesystem::is_directory(*folder)) {
    known = library::read_folder(*folder);
  } else if (!folder) {
    for (const auto& row : store.operators()) known.push_back(library::from_line(row.line));
  }
  const size_t added = library::merge(known, found);
  if (folder) {
    library::write_folder(*folder, known);
  } else {
    std::map<std::string, std::string> splits;
    for (const auto& row : store.operators()) splits[row.id] = row.splits;
    std::vector<store::Store::Operator> rows;
    for (const Entry& e : known) rows.push_back({e.id, library::to_line(e), splits[e.id]});
    store.put_operators(rows);
  }
  if (arguments.has("--json"))
    fmt::print(
        "{}\n",
        json{{"network", name}, {"operators", found.size()}, {"new", added}, {"known", known.size()}}.dump(
            2));
  else
    fmt::print("{}: {} operators, {} new, {} in the library\n", name, found.size(), added, known.size());
  return 0;
}

// The best verified trial of each operator, environment and shape, where its own workload was tuned.
int64_t attach_trials(store::Store& store, const std::vector<Entry>& entries) {
  std::map<std::string, const Entry*> by_id;
  for (const Entry& e : entries) by_id.emplace(e.id, &e);
  std::map<std::array<std::string, 3>, store::Store::OperatorBest> best;
  for (const artifact::TuningRecord& r : store.all()) {
    const auto it = by_id.find(r.workload.substr(0, 16));
    if (it == by_id.end() || !flow::is_verified(r.measurement) || !(r.measurement.time_us > 0)) continue;
    auto [place, is_new] = best.try_emplace({it->first, r.environment, r.shape});
    if (!is_new && !(r.measurement.time_us < place->second.time_us)) continue;
    place->second = {it->first,        r.environment,         r.shape,    library::to_line(*it->second),
                     r.schedule.str(), r.measurement.time_us, r.unix_time};
  }
  for (const auto& [key, b] : best) store.put_best(b);
  return static_cast<int64_t>(best.size());
}

int update(const Arguments& arguments, store::Store& store) {
  const std::string folder = arguments.get("--folder", "library/operators");
  const std::vector<Entry> entries = library::read_folder(folder);
  std::map<std::string, std::string> splits;
  for (const Entry& e : entries) splits[e.id];
  const std::filesystem::path sets = std::filesystem::path(folder).parent_path() / "benchmark";
  if (std::filesystem::is_directory(sets))
    for (const std::string& file : list_folder(sets.string())) {
      const std::string name = std::filesystem::path(file).stem().string();
      for (const std::string& line : words(read_text((sets / file).string()), '\n')) {
        if (line[0] == '#') continue;
        const auto it = splits.find(line.substr(0, line.find(' ')));
        if (it == splits.end())
          throw Error(Code::kInvalidArgument,
                      fmt::format("{}: no operator of the library is '{}'", file, line));
        it->second += (it->second.empty() ? "" : ",") + name;
      }
    }
  std::vector<store::Store::Operator> rows;
  for (const Entry& e : entries) rows.push_back({e.id, library::to_line(e), splits[e.id]});
  store.put_operators(rows);
  const int64_t attached = attach_trials(store, entries);
  if (arguments.has("--json"))
    fmt::print(
        "{}\n",
        json{{"operators", rows.size()}, {"bests_from_trials", attached}, {"store", store.path()}}.dump(2));
  else
    fmt::print("{} operators loaded into {}; {} best schedules taken from trials\n", rows.size(),
               store.path(), attached);
  return 0;
}

int run(const Arguments& arguments) {
  const flow::Settings settings = settings_from(arguments);
  const std::string action = *arguments.get("ACTION");
  std::string notice;
  store::Store store(settings.store_path, &notice);
  if (!notice.empty()) fmt::print(stderr, "note: {}\n", notice);
  if (action == "list") return list(arguments, store);
  if (action == "show") return show(arguments, store);
  if (action == "stats") return stats(arguments, store);
  if (action == "import") return import(arguments, store);
  if (action == "update") return update(arguments, store);
  throw Error(Code::kInvalidArgument,
              fmt::format("library: unknown action '{}'; known: list, show, import, update, stats", action));
}

}  // namespace

Command library_command() {
  std::vector<Option> options = settings_options();
  for (const Option& o : model_options()) options.push_back(o);
  options.push_back({"--folder", "FOLDER",
                     "update: where the text files are (default library/operators); import: write there, not "
                     "to the store"});
  options.push_back(
      {"--range", "NAME=LOW..HIGH@N", "import: extents of a symbol, and one that stands for them", true});
  options.push_back({"--samples", "NAME,...",
                     "import: symbols that count samples (batch does): not a variable length", true});
  options.push_back({"--name", "NAME", "import: what the network is called (default: the file's name)"});
  options.push_back({"--kind", "KIND", "list, stats: only this operator of the model, e.g. Conv"});
  options.push_back({"--pattern", "NAME", "list, stats: only this parallel pattern, e.g. product"});
  options.push_back({"--dtype", "TYPE", "list, stats: only this element type"});
  options.push_back({"--length", "fixed|variable", "list, stats: only these"});
  options.push_back({"--network", "NAME", "list, stats: only operators of this network"});
  options.push_back({"--split", "NAME", "list, stats: only this benchmark set (fixed, variable)"});
  return {"library",
          "operators of real networks, and the best schedules known of them",
          "thrice library list --split fixed",
          {{"ACTION", "list | show | import | update | stats"},
           {"MODEL", "import: an ONNX file; show: an operator's id or its beginning", false}},
          options,
          run};
}

}  // namespace thrice::cli
