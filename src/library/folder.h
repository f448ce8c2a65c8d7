// The library's files: library/operators/PATTERN.txt, one operator a line, sorted by id; lines that begin
// with # are for readers.
#pragma once
#include <string>
#include <vector>

#include "library/entry.h"

namespace thrice::library {

// All operators of a folder. Errors: kIo (no folder), kInvalidArgument naming file and line: a line that is
// wrong, or an operator that stands there twice (by id, or by identity()).
std::vector<Entry> read_folder(const std::string& folder);

// Adds to `into` what is not there; of operators that are, the networks and wider ranges. Returns how many
// were new.
size_t merge(std::vector<Entry>& into, const std::vector<Entry>& more);

// Writes every pattern's file anew, whole or not at all (each beside it first, then renamed).
void write_folder(const std::string& folder, const std::vector<Entry>& entries);

}  // namespace thrice::library
