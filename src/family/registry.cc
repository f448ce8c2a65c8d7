#include <algorithm>

#include "family/column/column.h"
#include "family/conv/conv.h"
#include "family/family.h"
#include "family/map/map.h"
#include "family/matmul/matmul.h"
#include "family/pool/pool.h"
#include "family/resize/resize.h"
#include "family/row/row.h"

namespace thrice::family {

const std::vector<const Family*>& families() {
  static const RowFamily row;
  static const ColumnFamily column;
  static const MapFamily map;
  // The planner asks in this order: heavy cores first, then reductions, then plain maps.
  static const std::vector<const Family*> kAll = {&matmul_family(), &conv_family(), &pool_family(), &resize_family(), &row, &column, &map};
  return kAll;
}

const Family* find_family(std::string_view name) {
  const auto& all = families();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Family* f) { return f->name() == name; });
  return it == all.end() ? nullptr : *it;
}

}  // namespace thrice::family
