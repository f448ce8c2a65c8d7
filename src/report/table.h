// Terminal tables: columns as wide as their content, numbers to the right.
#pragma once
#include <string>
#include <vector>

namespace thrice::report {

class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);  // as many cells as the header
  // Right-aligns every column but those whose index is in `left`. Cells longer than `max_width` characters
  // are cut with "...".
  std::string str(const std::vector<size_t>& left = {0}, size_t max_width = 48) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string microseconds(double us);  // "12.3 us", "4.56 ms", "1.23 s"
std::string bytes(double count);      // "1.5 MiB"
std::string number(double value);     // three significant digits

}  // namespace thrice::report
