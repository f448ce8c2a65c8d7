// host_function: string operators and table look-ups that no kernel computes (docs/ops.md).
#include <fmt/format.h>
#include <thrice/status.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <regex>

#include "ir/evaluate_groups.h"
#include "ir/evaluate_strides.h"

namespace thrice::ir {
namespace {

const Array& strings(const Node& node, const Operands& operands, size_t i) {
  const Array& x = operand(node, operands, i);
  if (!lives_in_s(x.dtype)) bad_node(node, fmt::format("operand {} must hold strings", i));
  return x;
}

Results string_concat(const Node& node, const Operands& operands) {
  const Array &x = strings(node, operands, 0), &y = strings(node, operands, 1);
  auto out = make_array(DType::kString, broadcast_shapes(x.shape, y.shape));
  size_t o = 0;
  for_each_run<2>(out->shape,
                  {broadcast_strides(x.shape, out->shape), broadcast_strides(y.shape, out->shape)},
                  [&](const auto& at, int64_t n, const auto& stride) {
                    for (int64_t i = 0; i < n; ++i)
                      out->s[o++] = x.s[static_cast<size_t>(at[0] + i * stride[0])] +
                                    y.s[static_cast<size_t>(at[1] + i * stride[1])];
                  });
  return {out};
}

// Python's str.split: at runs of blanks without a delimiter, at every occurrence with one; at most `most`
// cuts.
std::vector<std::string> split(const std::string& text, const std::string& delimiter, int64_t most) {
  constexpr const char* kBlanks = " \t\n\v\f\r";
  std::vector<std::string> parts;
  if (!delimiter.empty()) {
    size_t begin = 0;
    for (size_t end; most > 0 && (end = text.find(delimiter, begin)) != std::string::npos; --most) {
      parts.push_back(text.substr(begin, end - begin));
      begin = end + delimiter.size();
    }
    if (!text.empty()) parts.push_back(text.substr(begin));
    return parts;
  }
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string::npos; --most) {
    const size_t end = most > 0 ? text.find_first_of(kBlanks, begin) : std::string::npos;
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    begin = end == std::string::npos ? end : text.find_first_not_of(kBlanks, end);
  }
  return parts;
}

Results string_split(const Node& node, const Operands& operands) {
  const Array& x = strings(node, operands, 0);
  const std::string delimiter = node.string_attr("delimiter", "");
  const int64_t most = node.int_attr("maxsplit", std::numeric_limits<int64_t>::max());
  std::vector<std::vector<std::string>> rows;
  size_t longest = 0;
  for (const std::string& text : x.s) {
    rows.push_back(split(text, delimiter, most));
    longest = std::max(longest, rows.back().size());
  }
  std::vector<int64_t> shape = x.shape;
  shape.push_back(static_cast<int64_t>(longest));
  auto parts = make_array(DType::kString, shape), counts = make_array(DType::kI64, x.shape);
  for (size_t r = 0; r < rows.size(); ++r) {
    counts->i[r] = static_cast<int64_t>(rows[r].size());
    std::copy(rows[r].begin(), rows[r].end(), parts->s.begin() + static_cast<std::ptrdiff_t>(r * longest));
  }
  return {parts, counts};
}

Results regex_full_match(const Node& node, const Operands& operands) {
  const Array& x = strings(node, operands, 0);
  auto out = make_array(DType::kBool, x.shape);
  try {
    const std::regex pattern(node.string_attr("pattern", ""), std::regex::ECMAScript);
    for (size_t i = 0; i < x.s.size(); ++i) out->i[i] = std::regex_match(x.s[i], pattern) ? 1 : 0;
  } catch (const std::regex_error& e) {
    bad_node(node, fmt::format("the pattern is not understood: {}", e.what()));
  }
  return {out};
}

std::string with_case(std::string text, const std::string& action) {  // ASCII letters only
  for (char& c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (action == "LOWER" && u < 128) c = static_cast<char>(std::tolower(u));
    if (action == "UPPER" && u < 128) c = static_cast<char>(std::toupper(u));
  }
  return text;
}

Results string_normalizer(const Node& node, const Operands& operands) {
  const Array& x = strings(node, operands, 0);
  if (x.shape.empty() || x.shape.size() > 2 || (x.shape.size() == 2 && x.shape[0] != 1))
    bad_node(node, "needs [C] or [1, C]");
  const std::string action = node.string_attr("case_change_action", "NONE");
  const bool sensitive = node.int_attr("is_case_sensitive", 0) != 0;
  std::vector<std::string> stop = has_operand(operands, 1) ? operands[1]->s : std::vector<std::string>{};
  if (!sensitive)
    for (std::string& word : stop) word = with_case(word, "LOWER");
  std::vector<std::string> kept;
  for (const std::string& word : x.s)
    if (std::find(stop.begin(), stop.end(), sensitive ? word : with_case(word, "LOWER")) == stop.end())
      kept.push_back(with_case(word, action));
  if (kept.empty()) kept.emplace_back();
  std::vector<int64_t> shape = x.shape;
  shape.back() = static_cast<int64_t>(kept.size());
  auto out = make_array(DType::kString, shape);
  out->s = std::move(kept);
  return {out};
}

// Key of an element of any dtype for look-ups; NaN equals NaN.
std::string key_of(const Array& x, size_t i) {
  if (lives_in_s(x.dtype)) return x.s[i];
  if (!lives_in_f(x.dtype)) return fmt::format("{}", x.i[i]);
  return std::isnan(x.f[i]) ? "nan" : fmt::format("{}", x.f[i] + 0.0);  // + 0.0: -0 equals 0
}

Results label_encoder(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Array& keys = operand(node, operands, 1);
  const Array& values = operand(node, operands, 2);
  const Array& otherwise = operand(node, operands, 3);
  if (keys.dtype != x.dtype || keys.size() != values.size() || otherwise.dtype != values.dtype ||
      otherwise.size() < 1)
    bad_node(node, "keys, values and default do not fit");
  std::map<std::string, size_t> table;
  for (int64_t k = 0; k < keys.size(); ++k)
    table.emplace(key_of(keys, static_cast<size_t>(k)), static_cast<size_t>(k));
  auto out = make_array(values.dtype, x.shape);
  for (int64_t n = 0; n < x.size(); ++n) {
    const auto i = static_cast<size_t>(n);
    const auto found = table.find(key_of(x, i));
    const Array& from = found == table.end() ? otherwise : values;
    const size_t at = found == table.end() ? 0 : found->second;
    on_storage(*out, from, [&](auto& to, const auto& source) { to[i] = source[at]; });
  }
  return {out};
}

// Counts of the pool's n-grams (skips allowed) in each row.
Results tf_idf_vectorizer(const Node& node, const Operands& operands) {
  const Array& x = operand(node, operands, 0);
  const Array& pool = operand(node, operands, 1);
  const auto starts = ints_or(node, "ngram_counts", {}), columns = ints_or(node, "ngram_indexes", {});
  const int64_t shortest = node.int_attr("min_gram_length"), longest = node.int_attr("max_gram_length");
  const int64_t skips = node.int_attr("max_skip_count", 0);
  const std::string mode = node.string_attr("mode", "TF");
  std::vector<double> weights(columns.size(), 1.0);
  if (const auto found = node.attrs.find("weights"); found != node.attrs.end())
    if (const auto* list = std::get_if<std::vector<double>>(&found->second);
        list != nullptr && list->size() == columns.size())
      weights = *list;
  if (x.shape.empty() || x.shape.size() > 2 || pool.dtype != x.dtype)
    bad_node(node, "needs [C] or [N, C] and a pool of its dtype");
  std::map<std::vector<std::string>, size_t> grams;  // n-gram -> its number in the pool
  for (size_t n = 0, id = 0; n < starts.size(); ++n) {
    const auto length = static_cast<int64_t>(n) + 1;
    const int64_t end = n + 1 < starts.size() ? starts[n + 1] : pool.size();
    if (starts[n] < 0 || end > pool.size()) bad_node(node, "ngram_counts point outside the pool");
    for (int64_t at = starts[n]; at + length <= end; at += length, ++id) {
      std::vector<std::string> gram;
      for (int64_t k = 0; k < length; ++k) gram.push_back(key_of(pool, static_cast<size_t>(at + k)));
      if (id >= columns.size()) bad_node(node, "ngram_indexes is too short");
      if (length >= shortest && length <= longest) grams.emplace(std::move(gram), id);
    }
  }
  int64_t width = 0;
  for (int64_t c : columns) width = std::max(width, c + 1);
  std::vector<int64_t> shape = x.shape;
  const int64_t row_length = shape.back(), rows = row_length == 0 ? 0 : x.size() / row_length;
  shape.back() = width;
  auto out = make_array(DType::kF32, shape);
  for (int64_t r = 0; r < rows; ++r) {
    double* line = out->f.data() + r * width;
    for (int64_t length = shortest; length <= longest; ++length)
      for (int64_t step = 1; step <= (length == 1 ? 1 : skips + 1); ++step)
        for (int64_t at = 0; at + (length - 1) * step < row_length; ++at) {
          std::vector<std::string> gram;
          for (int64_t k = 0; k < length; ++k)
            gram.push_back(key_of(x, static_cast<size_t>(r * row_length + at + k * step)));
          if (const auto found = grams.find(gram); found != grams.end()) line[columns[found->second]] += 1;
        }
    for (size_t id = 0; id < columns.size(); ++id) {
      double& v = line[columns[id]];
      if (mode == "IDF") v = v > 0 ? weights[id] : 0;
      if (mode == "TFIDF") v *= weights[id];
    }
  }
  return {out};
}

}  // namespace

Results evaluate_strings(const Node& node, const Operands& operands) {
  const std::string name = node.string_attr("name", "");
  if (name == "StringConcat") return string_concat(node, operands);
  if (name == "StringSplit") return string_split(node, operands);
  if (name == "RegexFullMatch") return regex_full_match(node, operands);
  if (name == "StringNormalizer") return string_normalizer(node, operands);
  if (name == "LabelEncoder") return label_encoder(node, operands);
  if (name == "TfIdfVectorizer") return tf_idf_vectorizer(node, operands);
  throw Error(Code::kUnsupported, fmt::format("host function '{}' has no evaluation", name));
}

}  // namespace thrice::ir
