#include "ir/serialize.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json_depth.h"
#include "ir/check.h"

namespace thrice::ir {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
// Limits on what a file may ask for; real graphs stay far below.
constexpr int kMaxDimDepth = 32, kMaxBodyDepth = 32;
constexpr size_t kMaxRank = 64, kMaxTerms = 256;

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

class Writer {
 public:
  SerializedGraph run(const Graph& g) {
    // Names may hold any bytes (they are for people); attributes are kept exactly (see attribute()).
    result_.json = graph(g).dump(-1, ' ', false, Json::error_handler_t::replace);
    return std::move(result_);
  }

 private:
  static Json dim(const Dim& d) {
    if (d.is_const()) return d.value();
    Json terms = Json::array();
    for (const Dim::Term& t : d.terms()) {
      Json atoms = Json::array();
      for (const Dim::AtomPtr& a : t.first) {
        if (a->kind == AtomKind::kSymbol)
          atoms.push_back(a->name);
        else
          atoms.push_back(Json::array({static_cast<int>(a->kind), dim(a->a), dim(a->b)}));
      }
      terms.push_back(Json::array({t.second, std::move(atoms)}));
    }
    return terms;
  }
  static Json dims(const std::vector<Dim>& list) {
    Json result = Json::array();
    for (const Dim& d : list) result.push_back(dim(d));
    return result;
  }

  int64_t constant(const Tensor& t) {
    const auto key = std::make_tuple(static_cast<const void*>(t.data()), t.dtype(), t.shape());
    const auto index = static_cast<int64_t>(result_.constants.size());
    if (t.dtype() != DType::kString && t.bytes() > 0) {
      const auto [it, added] = seen_.emplace(key, index);
      if (!added) return it->second;
    }
    result_.constants.push_back(t);
    return index;
  }

  Json value(const Value& v) {
    Json result{{"type", std::string(dtype_name(v.type.dtype))}, {"shape", dims(v.type.shape)}};
    if (!v.name.empty()) result["name"] = v.name;
    if (v.constant) result["constant"] = constant(*v.constant);
    if (v.known) result["known"] = dims(*v.known);
    return result;
  }

  static Json number(double d) {
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
    return d;
  }
  static Json attribute(const Attribute& attr) {
    if (const auto* i = std::get_if<int64_t>(&attr)) return Json{{"i", *i}};
    if (const auto* d = std::get_if<double>(&attr)) return Json{{"f", number(*d)}};
    if (const auto* v = std::get_if<std::vector<int64_t>>(&attr)) return Json{{"is", *v}};
    if (const auto* s = std::get_if<std::string>(&attr)) {
      if (is_utf8(*s)) return Json{{"s", *s}};
      Json bytes = Json::array();
      for (char c : *s) bytes.push_back(static_cast<unsigned char>(c));
      return Json{{"bytes", std::move(bytes)}};
    }
    Json list = Json::array();
    for (double d : std::get<std::vector<double>>(attr)) list.push_back(number(d));
    return Json{{"fs", std::move(list)}};
  }

  Json node(const Node& n) {
    Json result{
        {"op", std::string(op_name(n.op))}, {"in", n.inputs}, {"out", n.outputs}, {"origin", n.origin}};
    if (!n.attrs.empty()) {
      Json attrs = Json::object();
      for (const auto& [key, attr] : n.attrs) attrs[key] = attribute(attr);
      result["attrs"] = std::move(attrs);
    }
    if (!n.bodies.empty()) {
      Json bodies = Json::array();
      for (const auto& body : n.bodies) bodies.push_back(graph(*body));
      result["bodies"] = std::move(bodies);
    }
    return result;
  }

  Json graph(const Graph& g) {
    Json values = Json::array(), nodes = Json::array(), origins = Json::array(), metadata = Json::object();
    for (const Value& v : g.values) values.push_back(value(v));
    for (const Node& n : g.nodes) nodes.push_back(node(n));
    for (const Origin& o : g.origins) origins.push_back(Json::array({o.op_type, o.name, o.opset}));
    for (const auto& [key, text] : g.metadata) metadata[key] = text;
    return Json{{"version", kVersion},
                {"name", g.name},
                {"inputs", g.inputs},
                {"input_names", g.input_names},
                {"outputs", g.outputs},
                {"output_names", g.output_names},
                {"values", std::move(values)},
                {"nodes", std::move(nodes)},
                {"origins", std::move(origins)},
                {"metadata", std::move(metadata)}};
  }

  SerializedGraph result_;
  std::map<std::tuple<const void*, DType, std::vector<int64_t>>, int64_t> seen_;
};

class Reader {
 public:
  explicit Reader(const std::vector<Tensor>& constants) : constants_(constants) {}

  Graph graph(const Json& json, int depth) {
    if (depth > kMaxBodyDepth) corrupt("bodies are nested too deep");
    if (integer(json.at("version"), 0, INT32_MAX) != kVersion)
      corrupt(fmt::format("its version is not {}", kVersion));
    Graph g;
    g.name = json.at("name").get<std::string>();
    for (const Json& v : list(json.at("values"))) g.values.push_back(value(v));
    for (const Json& o : list(json.at("origins")))
      g.origins.push_back({list(o).at(0).get<std::string>(), o.at(1).get<std::string>(), integer(o.at(2))});
    for (const Json& n : list(json.at("nodes"))) g.add_node(node(n, g, depth));
    g.inputs = ids(json.at("inputs"), g, 0);
    g.outputs = ids(json.at("outputs"), g, 0);
    g.input_names = names(json.at("input_names"));
    g.output_names = names(json.at("output_names"));
    if (!json.at("metadata").is_object()) corrupt("its metadata is no object");
    for (const auto& [key, text] : json.at("metadata").items()) g.metadata[key] = text.get<std::string>();
    return g;
  }

  [[noreturn]] static void corrupt(const std::string& what) {
    throw Error(Code::kCorrupt, "stored graph: " + what);
  }

 private:
  static const Json& list(const Json& json) {
    if (!json.is_array()) corrupt("something that should be a list is not");
    return json;
  }
  static int64_t integer(const Json& json, int64_t low = INT64_MIN, int64_t high = INT64_MAX) {
    if (!json.is_number_integer()) corrupt("something that should be a whole number is not");
    if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      corrupt("a number does not fit 64 bits");
    const auto i = json.get<int64_t>();
    if (i < low || i > high) corrupt(fmt::format("number {} is outside [{}, {}]", i, low, high));
    return i;
  }
  static double number(const Json& json) {
    if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (json == "inf") return std::numeric_limits<double>::infinity();
    if (json == "-inf") return -std::numeric_limits<double>::infinity();
    if (!json.is_number()) corrupt("something that should be a number is not");
    return json.get<double>();
  }
  static std::vector<std::string> names(const Json& json) {
    std::vector<std::string> result;
    for (const Json& n : list(json)) result.push_back(n.get<std::string>());
    return result;
  }
  static std::vector<ValueId> ids(const Json& json, const Graph& g, int64_t low) {
    std::vector<ValueId> result;
    const auto count = static_cast<int64_t>(g.values.size());
    for (const Json& id : list(json)) result.push_back(static_cast<ValueId>(integer(id, low, count - 1)));
    return result;
  }

  static Dim atom(const Json& json, int depth) {
    if (json.is_string()) return Dim::symbol(json.get<std::string>());
    const int64_t kind = integer(list(json).at(0), 1, 4);
    const Dim a = dim(json.at(1), depth + 1), b = dim(json.at(2), depth + 1);
    switch (static_cast<AtomKind>(kind)) {
      case AtomKind::kFloorDiv:
        return floor_div(a, b);
      case AtomKind::kMax:
        return dim_max(a, b);
      case AtomKind::kMin:
        return dim_min(a, b);
      default:
        return broadcast(a, b);
    }
  }
  static Dim dim(const Json& json, int depth) {
    if (depth > kMaxDimDepth) corrupt("an extent is nested too deep");
    if (json.is_number()) return integer(json);
    if (list(json).size() > kMaxTerms) corrupt("an extent has too many terms");
    Dim sum;
    for (const Json& term : json) {
      Dim product(integer(list(term).at(0)));
      if (list(term.at(1)).size() > kMaxTerms) corrupt("an extent has too many factors");
      for (const Json& a : term.at(1)) product = product * atom(a, depth);
      sum = sum + product;
    }
    return sum;
  }
  static std::vector<Dim> dims(const Json& json, size_t limit) {
    if (list(json).size() > limit) corrupt(fmt::format("a list of {} extents is too long", json.size()));
    std::vector<Dim> result;
    for (const Json& d : json) result.push_back(dim(d, 0));
    return result;
  }

  Value value(const Json& json) const {
    Value v;
    v.type.dtype = parse_dtype(json.at("type").get<std::string>());
    v.type.shape = dims(json.at("shape"), kMaxRank);
    v.name = json.value("name", std::string());
    if (json.contains("constant")) {
      const int64_t i = integer(json.at("constant"), 0, static_cast<int64_t>(constants_.size()) - 1);
      v.constant = constants_[static_cast<size_t>(i)];
    }
    if (json.contains("known")) v.known = dims(json.at("known"), static_cast<size_t>(kMaxKnown));
    return v;
  }

  static Attribute attribute(const Json& json) {
    if (!json.is_object() || json.size() != 1) corrupt("an attribute is malformed");
    const std::string kind = json.begin().key();
    const Json& v = json.begin().value();
    if (kind == "i") return integer(v);
    if (kind == "f") return number(v);
    if (kind == "s") return v.get<std::string>();
    if (kind == "is") {
      std::vector<int64_t> result;
      for (const Json& i : list(v)) result.push_back(integer(i));
      return result;
    }
    if (kind == "fs") {
      std::vector<double> result;
      for (const Json& d : list(v)) result.push_back(number(d));
      return result;
    }
    if (kind == "bytes") {
      std::string result;
      for (const Json& b : list(v)) result += static_cast<char>(integer(b, 0, 255));
      return result;
    }
    corrupt(fmt::format("'{}' is no kind of attribute", kind));
  }

  Node node(const Json& json, const Graph& g, int depth) {
    Node n;
    n.op = parse_op(json.at("op").get<std::string>());
    n.inputs = ids(json.at("in"), g, kNoValue);
    n.outputs = ids(json.at("out"), g, kNoValue);
    n.origin =
        static_cast<int32_t>(integer(json.at("origin"), -1, static_cast<int64_t>(g.origins.size()) - 1));
    if (json.contains("attrs")) {
      if (!json.at("attrs").is_object()) corrupt("attributes are no object");
      for (const auto& [key, attr] : json.at("attrs").items()) n.attrs[key] = attribute(attr);
    }
    if (json.contains("bodies"))
      for (const Json& body : list(json.at("bodies")))
        n.bodies.push_back(std::make_shared<const Graph>(graph(body, depth + 1)));
    return n;
  }

  const std::vector<Tensor>& constants_;
};

}  // namespace

SerializedGraph serialize(const Graph& graph) { return Writer().run(graph); }

Graph deserialize(const std::string& json, const std::vector<Tensor>& constants) {
  constexpr int kMaxNesting = 400;  // what the limits on bodies and extents above can need, and some
  if (nested_deeper_than(json, kMaxNesting)) Reader::corrupt("it is nested too deep");
  try {
    Graph graph = Reader(constants).graph(Json::parse(json), 0);
    verify(graph);
    return graph;
  } catch (const Json::exception& error) {
    Reader::corrupt(error.what());
  } catch (const Error& error) {
    if (error.code() == Code::kCorrupt) throw;
    Reader::corrupt(error.what());
  }
}

}  // namespace thrice::ir
