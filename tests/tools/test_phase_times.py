"""Would catch a profile that loses a phase, counts one twice, or prints nonsense for a file that is no report."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench/phase_times.py"
REPORT = {"model": "some/folder/net.onnx", "device": "card", "timed_at": "batch=1", "trials": 7, "verified": True,
          "phases": [{"phase": "import", "seconds": 1.0}, {"phase": "plan", "seconds": 2.0}, {"phase": "plan", "seconds": 1.0}]}


class PhaseTimes(unittest.TestCase):
    def run_on(self, *reports):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for index, report in enumerate(reports):
                files.append(pathlib.Path(folder) / f"{index}.json")
                files[-1].write_text(report if isinstance(report, str) else json.dumps(report))
            return subprocess.run([sys.executable, SCRIPT, *files], capture_output=True, text=True, check=False)

    def test_phases_are_added_up_in_order(self):
        lines = self.run_on(REPORT).stdout.splitlines()
        self.assertEqual(lines[0], "| phase | net, card: s | share |")
        self.assertEqual(lines[2:5], ["| import | 1.00 | 25 % |", "| plan | 3.00 | 75 % |", "| sum | 4.00 | 100 % |"])
        self.assertEqual(lines[-1], "- `net` at batch=1: 7 trials, verified.")

    def test_files_side_by_side(self):
        other = REPORT | {"phases": [{"phase": "tune", "seconds": 2.0}], "verified": False}
        done = self.run_on(REPORT, other)
        self.assertIn("| import | 1.00 | 25 % |  |  |", done.stdout)
        self.assertIn("| 2.00 | 100 % |", done.stdout)
        self.assertIn("not verified", done.stdout)

    def test_no_report(self):
        for wrong in ("{}", "[]", "x", REPORT | {"phases": []}, REPORT | {"phases": [{"phase": "a", "seconds": -1}]},
                      json.dumps(REPORT).replace("2.0", "NaN")):
            done = self.run_on(wrong)
            self.assertEqual(done.returncode, 1, wrong)
            self.assertIn("no report", done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()
