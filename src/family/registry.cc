#include <algorithm>

#include "family/attention/attention.h"
#include "family/column/column.h"
#include "family/conv/conv.h"
#include "family/delta_rule/delta_rule.h"
#include "family/family.h"
#include "family/map/map.h"
#include "family/matmul/matmul.h"
#include "family/pool/pool.h"
#include "family/resize/resize.h"
#include "family/row/row.h"
#include "family/scan/scan.h"
#include "family/scatter/scatter.h"
#include "family/top_k/top_k.h"

namespace thrice::family {

const std::vector<const Family*>& families() {
  static const RowFamily row;
  static const ColumnFamily column;
  static const MapFamily map;
  // The planner asks in this order: heavy cores first, then reductions, then plain maps.
  static const std::vector<const Family*> kAll = {
      &matmul_family(), &conv_family(),       &pool_family(),  &resize_family(),  &row, &column,
      &scan_family(),   &delta_rule_family(), &top_k_family(), &scatter_family(), &map, &attention_family()};
  return kAll;
}

const Family* find_family(std::string_view name) {
  const auto& all = families();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Family* f) { return f->name() == name; });
  return it == all.end() ? nullptr : *it;
}

}  // namespace thrice::family
