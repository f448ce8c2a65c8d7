// What a region of attention looks like: two products with a softmax between.
#pragma once
#include <string>
#include <vector>

#include "family/gemm.h"
#include "family/heavy.h"

namespace thrice::family {

// One of q, k, v: what is read, and where its elements lie.
struct AttentionOperand {
  ir::ValueId value = ir::kNoValue;  // operand of its product
  bool transposed = false;           // stored [.., depth, row] instead of [.., row, depth]
  // Multiplications by a number on the way, which may wait until the scores are made: results that stand for
  // their operands. Only where `in_fours`.
  std::vector<std::pair<ir::ValueId, ir::ValueId>> skipped;  // result, operand
  ir::ValueId source = ir::kNoValue;                         // plain buffer at the end of the views
  // Four neighbours along the depth, counted from a multiple of four, are aligned neighbours in `source`.
  bool in_fours = false;
  bool in_eights = false;  // the same of eight, in a source of 16 bits
};

struct AttentionForm {
  HeavyRegion region;                                        // around the second product
  ir::ValueId scores = ir::kNoValue, logits = ir::kNoValue;  // first product; operand of the softmax
  AttentionOperand q, k, v;
  // Row m sees the keys from `begin` to before `end` at its place alone (packed sequences); else kNoValue.
  ir::ValueId begin = ir::kNoValue, end = ir::kNoValue;
  bool has_window() const { return begin != ir::kNoValue; }
  bool nan_to_zero = false;          // rows without any score give zeros instead of NaN
  std::vector<ir::ValueId> factors;  // one-element constants that q and k were multiplied by (in_fours)
  Extent batches, rows, keys;
  int64_t depth = 0, width = 0;  // of q and k; of v
};

// Throws NotMatched with a sentence.
AttentionForm find_attention(const Workload& workload);

// Text of an element at (batch, row, depth), at float.
std::string operand_element(Emitter& e, const AttentionForm& form, const AttentionOperand& operand, Index z,
                            Index row, Index depth);
// Address of an element of an operand that is `in_fours` or `in_eights`.
std::string operand_address(Emitter& e, const ProgramDraft& draft, const AttentionForm& form,
                            const AttentionOperand& operand, Index z, Index row, Index depth);
// Text of the softmax's operand at (batch, row, key) where the product is `score`.
std::string logit_element(Emitter& e, const AttentionForm& form, Index z, Index row, Index key,
                          const std::string& score);
// Texts of the first key that a row of a window sees and of the one behind its last, within [0, keys].
std::pair<std::string, std::string> window_of_row(Emitter& e, const AttentionForm& form, Index z, Index row);
// Stores an element of the result.
void store_element(Emitter& e, const AttentionForm& form, Index z, Index row, Index column,
                   const std::string& element);

}  // namespace thrice::family
