// Dispatch by operator, conversions, and what all operator groups share. The graph walk is evaluate_graph.cc.
#include "ir/evaluate.h"

#include <fmt/format.h>
#include <thrice/status.h>
#include <unistd.h>

#include <cstring>

#include "ir/delta_rule.h"
#include "ir/evaluate_groups.h"
#include "ir/evaluate_threads.h"

namespace thrice::ir {
namespace {

template <class From, class To>
void convert(const std::byte* bytes, std::vector<To>& to) {
  parallel_for(static_cast<int64_t>(to.size()), 4, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      From v;
      std::memcpy(&v, bytes + i * sizeof(From), sizeof(From));
      to[i] = static_cast<To>(v);
    }
  });
}

uint64_t physical_memory() {
  static const uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

}  // namespace

int64_t Array::size() const { return num_elements(shape); }

ArrayPtr to_array(const Tensor& tensor) {
  auto out = make_array(tensor.dtype(), tensor.shape());
  switch (tensor.dtype()) {
    case DType::kF32:
      convert<float>(tensor.data(), out->f);
      break;
    case DType::kF64:
      convert<double>(tensor.data(), out->f);
      break;
    case DType::kI32:
      convert<int32_t>(tensor.data(), out->i);
      break;
    case DType::kI64:
      convert<int64_t>(tensor.data(), out->i);
      break;
    case DType::kString:
      out->s = tensor.string_values();
      break;
    default:
      parallel_for(tensor.size(), 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (is_float(tensor.dtype()))
            out->f[static_cast<size_t>(i)] = tensor.as_double(i);
          else
            out->i[static_cast<size_t>(i)] = tensor.as_int(i);
        }
      });
  }
  return out;
}

Tensor to_tensor(const Array& array) {
  if (lives_in_s(array.dtype)) return Tensor::strings(array.shape, array.s);
  Tensor out(array.dtype, array.shape);
  std::byte* bytes = out.mutable_data();
  if (array.dtype == DType::kF32) {
    parallel_for(out.size(), 4, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        const auto v = static_cast<float>(array.f[i]);
        std::memcpy(bytes + i * sizeof v, &v, sizeof v);
      }
    });
  } else if (lives_in_f(array.dtype)) {
    // Each element has bytes of its own, whatever its dtype.
    parallel_for(out.size(), 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out.set(i, array.f[static_cast<size_t>(i)]);
    });
  } else {
    for (int64_t i = 0; i < out.size(); ++i) out.set_int(i, array.i[static_cast<size_t>(i)]);
  }
  return out;
}

std::shared_ptr<Array> make_array(DType dtype, std::vector<int64_t> shape) {
  auto out = std::make_shared<Array>();
  out->dtype = dtype;
  const auto n = static_cast<uint64_t>(num_elements(shape));
  out->shape = std::move(shape);
  const uint64_t element = lives_in_s(dtype) ? sizeof(std::string) : sizeof(double);
  const auto refuse = [&] {
    throw Error(Code::kOutOfMemory, fmt::format("the evaluator would need {} bytes for one value",
                                                n > ~uint64_t{0} / element ? n : n * element));
  };
  if (n > physical_memory() / element) refuse();
  try {
    if (lives_in_f(dtype))
      out->f.resize(n);
    else if (lives_in_s(dtype))
      out->s.resize(n);
    else
      out->i.resize(n);
  } catch (const std::bad_alloc&) {
    refuse();
  }
  return out;
}

void bad_node(const Node& node, const std::string& reason) {
  throw Error(Code::kInvalidModel, fmt::format("{}: {}", op_name(node.op), reason));
}

bool has_operand(const Operands& operands, size_t i) { return i < operands.size() && operands[i] != nullptr; }

const Array& operand(const Node& node, const Operands& operands, size_t i) {
  if (!has_operand(operands, i)) bad_node(node, fmt::format("operand {} is missing", i));
  return *operands[i];
}

const std::vector<int64_t>& ints_of(const Node& node, const Operands& operands, size_t i) {
  const Array& x = operand(node, operands, i);
  if (lives_in_f(x.dtype) || lives_in_s(x.dtype))
    bad_node(node, fmt::format("operand {} must hold integers", i));
  return x.i;
}

std::vector<int64_t> ints_or(const Node& node, const std::string& key, std::vector<int64_t> otherwise) {
  return node.has_attr(key) ? node.ints_attr(key) : otherwise;
}

std::vector<ArrayPtr> evaluate_node(const Node& node, const std::vector<ArrayPtr>& operands) {
  switch (node.op) {
    case Op::cast:
      return evaluate_cast(node, operands);
    case Op::matmul:
      return evaluate_matmul(node, operands);
    case Op::conv:
      return evaluate_conv(node, operands);
    case Op::conv_transpose:
      return evaluate_conv_transpose(node, operands);
    case Op::pool:
      return evaluate_pool(node, operands);
    case Op::resize:
      return evaluate_resize(node, operands);
    case Op::grid_sample:
    case Op::roi_align:
      return evaluate_sample(node, operands);
    case Op::scan_sum:
      if (is_delta_rule(node)) return evaluate_delta_rule(node, operands);
      break;
    case Op::random:
      return evaluate_random(node, operands);
    case Op::host_function:
      return evaluate_strings(node, operands);
    default:
      break;
  }
  switch (op_class(node.op)) {
    case OpClass::kUnary:
    case OpClass::kBinary:
    case OpClass::kTernary:
      return evaluate_elementwise(node, operands);
    case OpClass::kView:
      return evaluate_view(node, operands);
    case OpClass::kReduce:
      return evaluate_reduce(node, operands);
    case OpClass::kHeavy:
      return evaluate_select(node, operands);
    case OpClass::kHost:
      return evaluate_host(node, operands);
    case OpClass::kControl:
      break;
  }
  throw Error(Code::kUnsupported, fmt::format("{} has no evaluation of its own", op_name(node.op)));
}

}  // namespace thrice::ir
