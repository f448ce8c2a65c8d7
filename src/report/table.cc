#include "report/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace thrice::report {

namespace {
// Characters, not bytes: UTF-8 continuation bytes take no room.
size_t width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}
std::string cut(const std::string& text, size_t max) {
  if (width(text) <= max) return text;
  std::string result;
  for (char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && width(result) + 3 >= max) break;
    result += c;
  }
  return result + "...";
}
}  // namespace

Table::Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }

void Table::add(std::vector<std::string> row) {
  row.resize(rows_[0].size());
  rows_.push_back(std::move(row));
}

std::string Table::str(const std::vector<size_t>& left, size_t max_width) const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(cut(row[c], max_width)));
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string cell = cut(rows_[r][c], max_width);
      const std::string space(widths[c] - width(cell), ' ');
      const bool is_left = std::find(left.begin(), left.end(), c) != left.end();
      line += (c ? "  " : "") + (is_left ? cell + space : space + cell);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) {
      size_t total = 0;
      for (size_t w : widths) total += w + 2;
      text += std::string(total - 2, '-') + "\n";
    }
  }
  return text;
}

std::string number(double value) { return fmt::format("{:.3g}", value); }

std::string microseconds(double us) {
  if (!(us >= 0)) return "-";
  if (us < 1000) return fmt::format("{:.1f} us", us);
  if (us < 1e6) return fmt::format("{:.2f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string bytes(double count) {
  static const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (count >= 1024 && unit + 1 < std::size(kUnits)) {
    count /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", count, unit == 0 ? 0 : 1, kUnits[unit]);
}

}  // namespace thrice::report
