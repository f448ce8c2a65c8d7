"""Catches: trials counted for the wrong region, a default that counts as a trial, failed trials that count as gains, regions of two
runs that are paired by name instead of workload, times within 1% that are called different choices."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import budget_table  # noqa: E402
import same_choices  # noqa: E402


def trial(workload, us, default=False, outcome="ok", uses=1):
    return {"workload": workload, "region": "Conv", "uses": str(uses), "default": "1" if default else "0", "outcome": outcome,
            "time_us": str(us)}


class TrialTables(unittest.TestCase):
    def test_budget(self):
        rows = budget_table.table([trial("a", 10, default=True, uses=3), trial("b", 10, default=True), trial("a", 8, uses=3),
                                   trial("a", 7.99, uses=3), trial("a", 0, outcome="wrong", uses=3), trial("b", 12)])
        self.assertEqual([row["share_at_start"] for row in rows], [0.75, 0.25])
        self.assertEqual([row["trials"] for row in rows], [3, 1])
        self.assertEqual(rows[0]["best_us"], 8)
        self.assertEqual(rows[0]["trials_without_gain"], 2)
        self.assertEqual(rows[0]["failed"], 1)

    def test_choices(self):
        def region(schedule, us):
            return {"workload": "w", "name": "Conv", "schedule": schedule, "now_us": us, "trials": 1}
        same = same_choices.compare({"a": region("x", 10), "b": region("x", 10), "c": region("x", 1)},
                                    {"a": region("x", 15), "b": region("y", 10.05), "d": region("x", 1)})
        self.assertEqual((same["workloads"], same["equal"], same["equal_or_within_1_percent"], same["only_in_one"]), (2, 1, 2, 2))
        apart = same_choices.compare({"a": region("x", 10)}, {"a": region("y", 10.2)})
        self.assertEqual(apart["share"], 0)

    def test_choices_after_equal_trials(self):
        def row(workload, schedule, us, default=False):
            return trial(workload, us, default) | {"family": "f", "tactic": "t", "parameters": schedule}
        short = [row("a", "d", 10, True), row("b", "d", 10, True), row("a", "x", 8), row("b", "y", 9.95)]
        long = [row("a", "d", 10, True), row("b", "d", 10, True), row("a", "x", 8.1), row("b", "y", 9.85), row("a", "z", 4)]
        same = same_choices.at_equal_trials(short, long)
        self.assertEqual((same["trials"], same["made"], same["candidates_of_both"]), (2, [2, 3], 2))
        self.assertEqual((same["workloads"], same["equal"], same["equal_or_within_1_percent"]), (2, 1, 1), "z came later; y is 1.5% off")
        self.assertAlmostEqual(same["different"][0]["apart"], 10 / 9.85 - 1)


if __name__ == "__main__":
    unittest.main()
