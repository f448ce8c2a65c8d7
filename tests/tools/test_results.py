"""Catches: a committed results file that breaks the schema, a validator that lets nonsense through, a merge that keeps the old
case, a mean that leaves cases out in silence."""
import copy
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import report  # noqa: E402
import results_file  # noqa: E402


def sample(run: str = "r1", name: str = "a", us: float = 10.0) -> dict:
    return {"schema": 1, "runs": [{"id": run, "date": "2026-11-30", "command": "c", "environment": {"device": "d"}}],
            "cases": [{"run": run, "suite": "s", "name": name, "dtype": "f32", "numerics": "strict", "thrice_us": us,
                       "error": 1e-7, "error_limit": 1e-5, "rivals": {"torch_eager": 40.0}}]}


class ResultsTest(unittest.TestCase):
    def test_committed_files(self):
        checked = 0
        for path in sorted((ROOT / "bench/results").glob("*/*.json")):  # those beside the device folders have forms of their own
            if path.parent.name == "agent":  # thrice agent eval --json
                data = json.loads(path.read_text())
                if path.stem.startswith("live"):  # bench/live_agents.cc
                    self.assertTrue(all(case["runs"] and case["best_known_us"] > 0 for case in data["cases"]), path)
                    continue
                self.assertTrue(data["totals"] and data["results"] and data["spaces"], path)
                continue
            self.assertEqual(results_file.problems(json.loads(path.read_text())), [], path)
            checked += 1
        self.assertGreater(checked, 0)

    def test_nonsense_is_refused(self):
        self.assertEqual(results_file.problems(sample()), [])
        for change in ({"thrice_us": 0}, {"thrice_us": float("nan")}, {"thrice_us": None}, {"error": float("inf")},
                       {"rivals": {"torch_eager": 0}}, {"rivals": []}, {"run": "r2"}, {"speed": 3}, {"sol_bound": "luck"},
                       {"trials": -1}, {"note": 5}):
            data = sample()
            data["cases"][0].update(change)
            with self.subTest(change):
                self.assertNotEqual(results_file.problems(data), [])
        for key in results_file.CASE_NEEDS + ("thrice_us", "error_limit"):
            data = sample()
            del data["cases"][0][key]
            with self.subTest(missing=key):
                self.assertNotEqual(results_file.problems(data), [])
        twice = sample()
        twice["cases"] *= 2
        self.assertNotEqual(results_file.problems(twice), [])
        self.assertNotEqual(results_file.problems({"schema": 2, "runs": [], "cases": []}), [])

    def test_the_later_case_counts(self):
        joined = results_file.join([sample("r1", "a", 10), sample("r1", "b", 11), sample("r2", "a", 5)])
        self.assertEqual([(c["name"], c["run"], c["thrice_us"]) for c in joined["cases"]], [("a", "r2", 5), ("b", "r1", 11)])
        self.assertEqual([run["id"] for run in joined["runs"]], ["r1", "r2"])
        self.assertEqual([run["id"] for run in results_file.join([sample("r1"), sample("r2")])["runs"]], ["r2"])
        self.assertEqual(results_file.problems(joined), [])

    def test_report(self):
        data = results_file.join([sample("r1", "a", 10), sample("r1", "b", 2.5), sample("r1", "c", 5)])
        data["cases"][2] = copy.deepcopy(data["cases"][2])
        del data["cases"][2]["rivals"]["torch_eager"]
        text = report.report(data)
        self.assertIn("geometric mean 8.00x of 2 cases, least 4.00x (a); 1 without a figure", text)
        self.assertIn("| a |  | 10.0 | 1.0e-07 / 1.0e-05 | 40.0 (4.00x) |", text)


if __name__ == "__main__":
    unittest.main()
