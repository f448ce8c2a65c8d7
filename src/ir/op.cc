#include "ir/op.h"

#include <fmt/format.h>
#include <thrice/status.h>

#include <array>

namespace thrice::ir {
namespace {

struct Row {
  std::string_view name;
  OpClass op_class;
};
// `if` is a keyword, so its enumerator ends in an underscore that the name does not have.
constexpr std::string_view plain(std::string_view name) {
  return name.back() == '_' ? name.substr(0, name.size() - 1) : name;
}
constexpr Row kRows[] = {
#define THRICE_OP_ROW(name, cls) {plain(#name), OpClass::cls},
    THRICE_OPS(THRICE_OP_ROW)
#undef THRICE_OP_ROW
};

}  // namespace

std::string_view op_name(Op op) { return kRows[static_cast<size_t>(op)].name; }

Op parse_op(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].name == name) return static_cast<Op>(i);
  throw Error(Code::kInvalidArgument,
              fmt::format("'{}' is not an operator of the intermediate form (docs/ops.md lists them)", name));
}

OpClass op_class(Op op) { return kRows[static_cast<size_t>(op)].op_class; }

bool is_elementwise(Op op) {
  const OpClass c = op_class(op);
  return c == OpClass::kUnary || c == OpClass::kBinary || c == OpClass::kTernary;
}

}  // namespace thrice::ir
