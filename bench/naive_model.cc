// How long plain single-threaded C++ loops (float32, -O2) need for the convolutions and products of a model;
// everything else is left out, so the figure is below what naive C++ of the whole model would need.
//   bench_naive_model MODEL --shape x=1,3,48,320
// Prints one JSON object: naive_us, convolutions, products, left_out (heavy nodes that no loop here covers).
#include <fmt/format.h>
#include <thrice/status.h>

#include <cstring>
#include <iostream>

#include "bench/naive_loops.h"
#include "frontend/import.h"
#include "ir/evaluate_window.h"
#include "ir/infer.h"

namespace {

using namespace thrice;  // NOLINT: a program of one file

using Floats = std::vector<float>;
Floats numbers(int64_t count) {
  Floats values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) * 0.125f - 1;
  return values;
}

frontend::ImportOptions options_of(int argc, char** argv) {
  frontend::ImportOptions options;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string text = argv[i + 1];
    const size_t equals = text.find('=');
    if (std::strcmp(argv[i], "--shape") != 0 || equals == std::string::npos)
      throw Error(Code::kInvalidArgument, "use: bench_naive_model MODEL --shape INPUT=1,3,48,320");
    std::vector<ir::Dim> shape;
    for (size_t at = equals + 1; at < text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      shape.emplace_back(std::stoll(text.substr(at, comma - at)));
      at = comma + 1;
    }
    options.input_shapes[text.substr(0, equals)] = shape;
  }
  return options;
}

double conv_us(const ir::Graph& graph, const ir::Node& node) {
  const auto shape = [&](ir::ValueId v) { return ir::static_shape(graph.value(v).type.shape); };
  const auto x = shape(node.inputs[0]), w = shape(node.inputs[1]), y = shape(node.outputs[0]);
  const ir::Window window = ir::make_window(node, x, {w.begin() + 2, w.end()}, false);
  const bench::NaiveConv conv{x[0],
                              x[1],
                              x[2],
                              x[3],
                              w[0],
                              w[1],
                              w[2],
                              w[3],
                              y[2],
                              y[3],
                              node.int_attr("group", 1),
                              window.stride[1],
                              window.stride[2],
                              window.begin[1],
                              window.begin[2],
                              window.dilation[1],
                              window.dilation[2]};
  const Floats a = numbers(ir::num_elements(x)), b = numbers(ir::num_elements(w));
  Floats c = numbers(ir::num_elements(y));
  return bench::microseconds([&] { bench::naive_conv(a.data(), b.data(), c.data(), conv); }, 3);
}

double matmul_us(const ir::Graph& graph, const ir::Node& node) {
  const auto shape = [&](ir::ValueId v) { return ir::static_shape(graph.value(v).type.shape); };
  const auto x = shape(node.inputs[0]), w = shape(node.inputs[1]), y = shape(node.outputs[0]);
  const int64_t n = y.back(), m = y[y.size() - 2], batch = ir::num_elements(y) / std::max<int64_t>(1, m * n);
  const int64_t k = x[x.size() - (node.int_attr("trans_a", 0) ? 2 : 1)];
  const bool shared = ir::num_elements(w) == k * n;
  const Floats a = numbers(batch * m * k), b = numbers((shared ? 1 : batch) * k * n);
  Floats c = numbers(batch * m * n);
  return bench::microseconds(
      [&] { bench::naive_matmul(a.data(), b.data(), c.data(), batch, m, n, k, shared); }, 3);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 2)
      throw Error(Code::kInvalidArgument, "use: bench_naive_model MODEL --shape INPUT=1,3,48,320");
    const ir::Graph graph = frontend::import_model(argv[1], options_of(argc, argv));
    double us = 0;
    int convolutions = 0, products = 0, left_out = 0;
    for (const ir::Node& node : graph.nodes) {
      if (node.op == ir::Op::conv && graph.value(node.inputs[0]).type.shape.size() == 4) {
        us += conv_us(graph, node);
        ++convolutions;
      } else if (node.op == ir::Op::matmul) {
        us += matmul_us(graph, node);
        ++products;
      } else if (node.op == ir::Op::conv || node.op == ir::Op::conv_transpose) {
        ++left_out;
      }
    }
    fmt::print("{{\"naive_us\": {:.1f}, \"convolutions\": {}, \"products\": {}, \"left_out\": {}}}\n", us,
               convolutions, products, left_out);
  } catch (const std::exception& error) {
    std::cerr << "bench_naive_model: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
