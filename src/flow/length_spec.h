// Which lengths of a symbolic dimension requests will have, as a user says it.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "plan/buckets.h"

namespace thrice::flow {

struct LengthSpec {
  std::string symbol;
  std::vector<plan::LengthShare> lengths;  // ascending; the shares' sum is 1
};

// "[NAME=]uniform:1-512", or "[NAME=]FILE": a text with one length a line, each with the number of requests
// that had it where that is not 1; '#' begins a comment. NAME may be left out where `symbols` holds one.
// At most 65536 different lengths, each from 1 to 2^31 - 1. Errors: kInvalidArgument that names file and
// line, kNotFound.
LengthSpec parse_lengths(const std::string& text, const std::set<std::string>& symbols);

}  // namespace thrice::flow
