// The script of the fake driver: cards and failures.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_cuda {

struct Card {
  std::string name = "Fake card";
  unsigned char uuid[16] = {};
  int major = 9, minor = 0, units = 132;
  uint64_t memory = uint64_t{1} << 30;
  // State, not script.
  uint64_t used = 0;
  int broken = 0;  // the code that every call gives after a kernel went wrong
};

// Calls `from` to `from + count - 1` of a function, counted from the script on, give this code.
struct Failure {
  std::string function;
  long long from = 1, count = 1;
  int code = 0;
  long long seen = 0;
};

struct Script {
  int driver = 12080, init = 0;
  std::vector<Card> cards = std::vector<Card>(1);
  std::vector<Failure> failures;
};

// Throws std::exception on a line that it does not know: a test that misspells must not pass.
Script parse(const std::string& text);

}  // namespace fake_cuda
