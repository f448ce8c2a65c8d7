// Results that may lie where an operand lay.
#pragma once
#include <vector>

#include "family/program.h"

namespace thrice::family {

// A result whose storage may be an operand's: every work-item reads an element of the operand before it
// writes the same bytes as an element of the result, and nothing else reads that element.
struct Share {
  size_t input = 0, output = 0;  // positions in graph.inputs, graph.outputs
  bool operator==(const Share&) const = default;
};

// What a family is too where some of its schedules allow that.
class InPlaceFamily {
 public:
  virtual ~InPlaceFamily() = default;
  // For schedules with `in_place=1`, whose kernels are written for it; of each operand and each result the
  // first pair that fits is taken.
  virtual std::vector<Share> shares(const Workload& workload, const Schedule& schedule) const = 0;
};
// None where the family is no InPlaceFamily or the schedule does not say in_place=1.
std::vector<Share> shares_of(const Family& family, const Workload& workload, const Schedule& schedule);
// Of each operand and each result the first pair is taken. Which one that is at a place in a model follows
// from lifetimes there, so what is to hold everywhere is looked at with each pair first: the sets that
// differ.
std::vector<std::vector<Share>> share_choices(const std::vector<Share>& shares);
// The schedule with `in_place=1` where the family then has pairs, else unchanged.
Schedule in_place(const Family& family, const Workload& workload, const Schedule& schedule);
Schedule apart(Schedule schedule);  // without `in_place`

// The text without the promise that the pairs' buffers lie apart; every other pair of buffers still does.
void drop_restrict(const ProgramDraft& draft, const std::vector<Share>& shares, ProgramText& program);

// Pairs of an operand and a result of one type whose elements, counted in memory, go together one by one: all
// that is computed from element i of the operand is element i of results. Whatever reads the operand in any
// other order (a reduction, a product, a transpose, a broadcast) leaves it out; so does another type, since
// elements of another width lie elsewhere. Whether a kernel reads them in that way is the family's to say.
std::vector<Share> elementwise_shares(const Workload& workload);

// Those of a region whose one result an epilogue writes, element by element or by vectors that do not
// overlap: what only the epilogue reads. Not for kernels that store an element twice (tiles that are moved
// back or clamped at an edge): the second time they would read what the first one wrote.
std::vector<Share> epilogue_shares(const Workload& workload);
bool stores_once(const std::string& gemm_tactic);

}  // namespace thrice::family
