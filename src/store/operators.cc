// The store's tables of the operator library.
#include "store/database.h"
#include "store/store.h"

namespace thrice::store {

void Store::put_operators(const std::vector<Operator>& operators) {
  db_->execute("BEGIN IMMEDIATE");
  try {
    for (const Operator& o : operators)
      db_->prepare("INSERT OR REPLACE INTO operator(id, line, splits) VALUES(?,?,?)")
          .bind(1, o.id)
          .bind(2, o.line)
          .bind(3, o.splits)
          .step();
    db_->execute("COMMIT");
  } catch (...) {
    db_->execute("ROLLBACK");
    throw;
  }
}

std::vector<Store::Operator> Store::operators() const {
  std::vector<Operator> all;
  auto rows = db_->prepare("SELECT id, line, splits FROM operator ORDER BY id");
  while (rows.step()) all.push_back({rows.text(0), rows.text(1), rows.text(2)});
  return all;
}

void Store::put_best(const OperatorBest& b) {
  db_->prepare(
         "INSERT OR REPLACE INTO operator_best(id, environment, shape, line, schedule, time_us, unix_time) "
         "VALUES(?,?,?,?,?,?,?)")
      .bind(1, b.id)
      .bind(2, b.environment)
      .bind(3, b.shape)
      .bind(4, b.line)
      .bind(5, b.schedule)
      .bind(6, b.time_us)
      .bind(7, b.unix_time)
      .step();
}

std::vector<Store::OperatorBest> Store::bests() const {
  std::vector<OperatorBest> all;
  auto rows = db_->prepare(
      "SELECT id, environment, shape, line, schedule, time_us, unix_time FROM operator_best "
      "ORDER BY id, environment, shape");
  while (rows.step())
    all.push_back({rows.text(0), rows.text(1), rows.text(2), rows.text(3), rows.text(4), rows.real(5),
                   rows.integer(6)});
  return all;
}

}  // namespace thrice::store
