// Versions of the store's schema: applied in order inside one transaction each; never edited once released,
// only added to.
#pragma once

namespace thrice::store {

inline constexpr const char* kMigrations[] = {
    // 1: environments (what a time depends on beside the kernel) and trials. `digest` covers the row: a row
    // that does not match is as if it were not there.
    R"sql(
      CREATE TABLE environment (
        key TEXT PRIMARY KEY,          -- hash of the description
        description TEXT NOT NULL      -- JSON: device, driver, compiler, product
      ) STRICT;
      CREATE TABLE trial (
        id INTEGER PRIMARY KEY,
        workload TEXT NOT NULL, shape TEXT NOT NULL, environment TEXT NOT NULL REFERENCES environment(key),
        schedule TEXT NOT NULL, source_key TEXT NOT NULL, outcome TEXT NOT NULL, message TEXT NOT NULL,
        time_us REAL NOT NULL, spread_us REAL NOT NULL, samples INTEGER NOT NULL,
        error REAL NOT NULL, error_limit REAL NOT NULL, build_ms REAL NOT NULL,
        registers INTEGER NOT NULL, spill_bytes INTEGER NOT NULL, temporary_bytes INTEGER NOT NULL,
        unix_time INTEGER NOT NULL, digest TEXT NOT NULL
      ) STRICT;
      CREATE INDEX trial_by_workload ON trial(workload, environment, shape);
    )sql",
    // 2: the operator library (docs/library.md): its entries as lines, and what was the best schedule of an
    // operator on a device at a shape, with the line that describes it there.
    R"sql(
      CREATE TABLE operator (
        id TEXT PRIMARY KEY, line TEXT NOT NULL, splits TEXT NOT NULL
      ) STRICT;
      CREATE TABLE operator_best (
        id TEXT NOT NULL, environment TEXT NOT NULL REFERENCES environment(key), shape TEXT NOT NULL,
        line TEXT NOT NULL, schedule TEXT NOT NULL, time_us REAL NOT NULL, unix_time INTEGER NOT NULL,
        PRIMARY KEY (id, environment, shape)
      ) STRICT;
    )sql",
    // 3: what a workload is on a device, for agents that learn from trials (flow/agent_train.h).
    R"sql(
      CREATE TABLE workload_facts (
        workload TEXT NOT NULL, shape TEXT NOT NULL, environment TEXT NOT NULL,
        facts TEXT NOT NULL,           -- "flops=30.1 bytes=22.5 ..."
        PRIMARY KEY (workload, shape, environment)
      ) STRICT;
    )sql",
    // 4: time of an execution while several run at once; 0 = not measured (all trials of before).
    "ALTER TABLE trial ADD COLUMN concurrent_us REAL NOT NULL DEFAULT 0",
    // 5: both states of the caches, and what the device was like while a time was taken; -1 = not told. Rows
    // of
    // older versions keep their digest.
    R"sql(
      ALTER TABLE trial ADD COLUMN warm_us REAL NOT NULL DEFAULT -1;
      ALTER TABLE trial ADD COLUMN cold_us REAL NOT NULL DEFAULT -1;
      ALTER TABLE trial ADD COLUMN throttled_samples INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE trial ADD COLUMN sm_mhz REAL NOT NULL DEFAULT -1;
      ALTER TABLE trial ADD COLUMN least_sm_mhz REAL NOT NULL DEFAULT -1;
      ALTER TABLE trial ADD COLUMN memory_mhz REAL NOT NULL DEFAULT -1;
      ALTER TABLE trial ADD COLUMN temperature_c REAL NOT NULL DEFAULT -1;
      ALTER TABLE trial ADD COLUMN power_w REAL NOT NULL DEFAULT -1;
    )sql",
    // 6: what passed the full gate, with the error it had there.
    R"sql(
      CREATE TABLE passed (
        workload TEXT NOT NULL, shape TEXT NOT NULL, environment TEXT NOT NULL, schedule TEXT NOT NULL,
        source_key TEXT NOT NULL,      -- of the kernel's text
        gate TEXT NOT NULL,            -- "seed=1": what decides the gate's inputs
        error REAL NOT NULL, error_limit REAL NOT NULL, unix_time INTEGER NOT NULL, digest TEXT NOT NULL,
        PRIMARY KEY (workload, shape, environment, schedule, source_key, gate)
      ) STRICT;
    )sql",
};

}  // namespace thrice::store
