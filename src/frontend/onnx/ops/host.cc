// Operators whose result sizes depend on data, and operators on strings: they run on the host.
#include <algorithm>

#include "frontend/onnx/graph_builder.h"
#include "frontend/onnx/import_state.h"
#include "frontend/onnx/ops/expr.h"
#include "frontend/onnx/ops/groups.h"

namespace thrice::frontend::onnx {
namespace {

void nonzero(NodeContext& ctx) { out(ctx, 0, emit(Op::nonzero, in(ctx, 0))); }

void compress(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Attributes attrs;
  if (ctx.has_attr("axis")) attrs["axis"] = ctx.axis(x.id(), ctx.int_attr("axis"));
  out(ctx, 0, emit(Op::compress, x, in(ctx, 1), attrs));
}

void unique(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  Attributes attrs{{"sorted", ctx.int_attr("sorted", 1)}};
  if (ctx.has_attr("axis")) attrs["axis"] = ctx.axis(x.id(), ctx.int_attr("axis"));
  const std::vector<ValueId> results = ctx.emit_many(Op::unique, {x.id()}, 4, attrs);
  for (size_t i = 0; i < results.size(); ++i) ctx.set_output(i, results[i]);
}

void non_max_suppression(NodeContext& ctx) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < 5; ++i) operands.push_back(ctx.optional_input(i));
  ctx.set_output(0, ctx.emit(Op::non_max_suppression, operands,
                             {{"center_point_box", ctx.int_attr("center_point_box", 0)}}));
}

void det(NodeContext& ctx) {
  const Expr x = in(ctx, 0);
  out(ctx, 0, cast(emit(Op::det, widened(x)), x.dtype()));
}

// Operators that only the interpreter knows.
void host_function(NodeContext& ctx, std::vector<ValueId> operands, size_t results, Attributes attrs = {}) {
  if (!ctx.builder().state().options.allow_slow)
    ctx.refuse("it runs on the host only; allow that with --allow-slow, or do it outside the model");
  attrs["name"] = ctx.op_type();
  const std::vector<ValueId> values = ctx.emit_many(Op::host_function, operands, results, attrs);
  for (size_t i = 0; i < values.size(); ++i) ctx.set_output(i, values[i]);
}

Tensor string_list(NodeContext& ctx, const char* name) {
  const std::vector<std::string> values =
      ctx.has_attr(name) ? ctx.strings_attr(name) : std::vector<std::string>{};
  return Tensor::strings({static_cast<int64_t>(values.size())}, values);
}

void string_concat(NodeContext& ctx) { host_function(ctx, {ctx.input(0), ctx.input(1)}, 1); }

void string_split(NodeContext& ctx) {
  Attributes attrs{{"delimiter", ctx.string_attr("delimiter", "")}};
  if (ctx.has_attr("maxsplit")) attrs["maxsplit"] = ctx.int_attr("maxsplit");
  host_function(ctx, {ctx.input(0)}, 2, attrs);
}

void regex_full_match(NodeContext& ctx) {
  host_function(ctx, {ctx.input(0)}, 1, {{"pattern", ctx.string_attr("pattern", "")}});
}

void string_normalizer(NodeContext& ctx) {
  host_function(ctx, {ctx.input(0), ctx.constant(string_list(ctx, "stopwords"))}, 1,
                {{"case_change_action", ctx.string_attr("case_change_action", "NONE")},
                 {"is_case_sensitive", ctx.int_attr("is_case_sensitive", 0)},
                 {"locale", ctx.string_attr("locale", "en_US")}});
}

// Keys or values of a LabelEncoder, whichever attribute holds them.
Tensor label_list(NodeContext& ctx, const std::string& what) {
  if (ctx.has_attr(what + "_tensor")) return ctx.tensor_attr(what + "_tensor");
  if (ctx.has_attr(what + "_strings")) return string_list(ctx, (what + "_strings").c_str());
  if (ctx.has_attr(what + "_int64s")) return Tensor::ints(ctx.ints_attr(what + "_int64s"));
  if (ctx.has_attr(what + "_floats")) {
    const std::vector<double> values = ctx.floats_attr(what + "_floats");
    return Tensor::of(DType::kF32, {static_cast<int64_t>(values.size())}, values);
  }
  ctx.invalid("no " + what + " are given");
}

void label_encoder(NodeContext& ctx) {
  const Tensor keys = label_list(ctx, "keys"), values = label_list(ctx, "values");
  Tensor otherwise;
  if (ctx.has_attr("default_tensor"))
    otherwise = ctx.tensor_attr("default_tensor").reshaped({});
  else if (values.dtype() == DType::kString)
    otherwise = Tensor::strings({}, {ctx.string_attr("default_string", "_Unused")});
  else if (is_float(values.dtype()))
    otherwise = Tensor::scalar(values.dtype(), ctx.float_attr("default_float", -0.0));
  else
    otherwise = Tensor::scalar(values.dtype(), static_cast<double>(ctx.int_attr("default_int64", -1)));
  host_function(ctx, {ctx.input(0), ctx.constant(keys), ctx.constant(values), ctx.constant(otherwise)}, 1);
}

// Counts of the pool's n-grams in each row. Strings are left to the host.
void tf_idf(NodeContext& ctx) {
  if (!ctx.has_attr("pool_int64s")) {
    Attributes attrs{{"mode", ctx.string_attr("mode", "TF")},
                     {"min_gram_length", ctx.int_attr("min_gram_length")},
                     {"max_gram_length", ctx.int_attr("max_gram_length")},
                     {"max_skip_count", ctx.int_attr("max_skip_count")},
                     {"ngram_counts", ctx.ints_attr("ngram_counts")},
                     {"ngram_indexes", ctx.ints_attr("ngram_indexes")}};
    if (ctx.has_attr("weights")) attrs["weights"] = ctx.floats_attr("weights");
    return host_function(ctx, {ctx.input(0), ctx.constant(string_list(ctx, "pool_strings"))}, 1, attrs);
  }
  const Expr x = cast(in(ctx, 0), DType::kI64);
  if (x.rank() < 1 || x.rank() > 2 || !x.dim(-1).is_const())
    ctx.refuse("the number of tokens in a row is not known");
  const int64_t tokens = x.dim(-1).value(), shortest = ctx.int_attr("min_gram_length");
  const int64_t longest = ctx.int_attr("max_gram_length"), skips = ctx.int_attr("max_skip_count");
  const std::vector<int64_t> pool = ctx.ints_attr("pool_int64s"), starts = ctx.ints_attr("ngram_counts"),
                             places = ctx.ints_attr("ngram_indexes");
  if (skips < 0 || skips > tokens + 64) ctx.refuse("max_skip_count is negative or far longer than a row");
  int64_t width = 0;
  for (int64_t place : places) width = std::max(width, place + 1);
  ir::Shape shape(x.shape().begin(), x.shape().end() - 1);
  shape.push_back(width);
  Expr total = filled(ctx, DType::kF32, 0, shape);
  size_t first = 0;  // number of the n-gram in ngram_indexes
  for (size_t level = 0; level < starts.size(); ++level) {
    const auto n = static_cast<int64_t>(level) + 1;
    const int64_t begin = starts[level];
    const int64_t end = level + 1 < starts.size() ? starts[level + 1] : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()))
      ctx.invalid("ngram_counts is out of range");
    const int64_t grams = (end - begin) / n;
    if (first + static_cast<size_t>(grams) > places.size()) ctx.invalid("ngram_indexes is too short");
    if (n >= shortest && n <= longest && grams > 0) {
      // One-hot rows put each n-gram's count where ngram_indexes says.
      Tensor placing(DType::kF32, {grams, width});
      placing.mutable_data();
      for (int64_t g = 0; g < grams; ++g) {
        const int64_t place = places[first + static_cast<size_t>(g)];
        if (place < 0) ctx.invalid("ngram_indexes is negative");
        placing.set(g * width + place, 1);
      }
      const Expr table = constant(ctx, placing);
      for (int64_t skip = 1; skip <= (n == 1 ? 1 : skips + 1); ++skip) {
        const int64_t windows = tokens - (n - 1) * skip;
        if (windows < 1) break;
        std::optional<Expr> hit;
        for (int64_t j = 0; j < n; ++j) {
          std::vector<int64_t> wanted;
          for (int64_t g = 0; g < grams; ++g) wanted.push_back(pool[static_cast<size_t>(begin + g * n + j)]);
          const Expr token = unsqueeze(slice(x, -1, j * skip, j * skip + windows), {-1});
          const Expr same = equal(token, constant(ctx, Tensor::ints(wanted)));
          hit = hit ? logical_and(*hit, same) : same;
        }
        const Expr counts = reduce(cast(*hit, DType::kF32), "sum", {hit->rank() - 2}, false);
        const Expr row = counts.rank() == 1 ? unsqueeze(counts, {0}) : counts;
        total = total + reshape(matmul(row, table), shape);
      }
    }
    first += static_cast<size_t>(grams);
  }
  const std::string mode = ctx.string_attr("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") ctx.invalid("mode must be TF, IDF or TFIDF");
  if (mode == "IDF") total = cast(greater(total, 0.0), DType::kF32);
  if (mode != "TF" && ctx.has_attr("weights")) {
    const std::vector<double> weights = ctx.floats_attr("weights");
    if (static_cast<int64_t>(weights.size()) != width) ctx.invalid("weights do not fit the result");
    total = total * constant(ctx, Tensor::of(DType::kF32, {width}, weights));
  }
  out(ctx, 0, total);
}

}  // namespace

std::vector<OperatorImport> host_imports() {
  return {
      {"", "NonZero", 9, nonzero},
      {"", "Compress", 9, compress},
      {"", "Unique", 11, unique},
      {"", "NonMaxSuppression", 10, non_max_suppression},
      {"", "Det", 11, det},
      {"", "StringConcat", 20, string_concat},
      {"", "StringSplit", 20, string_split},
      {"", "RegexFullMatch", 20, regex_full_match},
      {"", "StringNormalizer", 10, string_normalizer},
      {"", "TfIdfVectorizer", 9, tf_idf},
      {"ai.onnx.ml", "LabelEncoder", 2, label_encoder},
  };
}

}  // namespace thrice::frontend::onnx
