"""Catches: a search that loses trials when it is killed, tries them again afterwards, or writes another number of them to the
record than to the store; a replay that needs the model or the device."""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import small_model


class ResumeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        devices = subprocess.run([str(small_model.EXECUTABLE), "devices"], capture_output=True, text=True)
        if "opencl:0" not in devices.stdout:
            raise unittest.SkipTest("no OpenCL device")

    def setUp(self):
        keep = tempfile.TemporaryDirectory(prefix="thrice_resume_")
        self.addCleanup(keep.cleanup)
        self.folder = keep.name
        self.model = os.path.join(self.folder, "model.onnx")
        small_model.write_model(self.model, 0.5)
        self.record = os.path.join(self.folder, "trials.csv")

    def command(self, trials: int) -> list[str]:
        return [str(small_model.EXECUTABLE), "optimize", self.model, "--dims", "length=300", "--device", "opencl:0", "--budget", "10m",
                "--trials", str(trials), "--store", os.path.join(self.folder, "store.sqlite"), "--cache", os.path.join(self.folder, "cache"),
                "--record", self.record, "--output", os.path.join(self.folder, "out.thrice"), "--quiet"]

    def rows(self) -> list[dict]:
        if not os.path.exists(self.record):
            return []
        with open(self.record, newline="") as file:
            return list(csv.DictReader(file))

    def stored(self) -> int:
        listed = subprocess.run([str(small_model.EXECUTABLE), "cache", "list", "--json", "--store", os.path.join(self.folder, "store.sqlite"),
                                 "--cache", os.path.join(self.folder, "cache")], capture_output=True, text=True, check=True)
        return json.loads(listed.stdout)["trials"]

    def test_killed_and_run_again(self):
        run = subprocess.Popen(self.command(1000), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while len(self.rows()) < 8 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertIsNone(run.poll(), "it ended before it could be killed")
        run.send_signal(signal.SIGKILL)
        run.wait()
        run.stderr.close()
        kept = self.rows()
        self.assertGreaterEqual(len(kept), 8)
        # The store first, then the record: between the two the kill may cost the record one line.
        self.assertIn(self.stored() - len(kept), (0, 1))

        again = subprocess.run(self.command(6), capture_output=True, text=True)
        self.assertEqual(again.returncode, 0, again.stderr)
        rows = self.rows()
        self.assertEqual(rows[:len(kept)], kept)
        new = rows[len(kept):]
        self.assertGreater(len(new), 0)
        self.assertLessEqual(len(new), 6)
        key = lambda row: (row["workload"], row["shape"], row["family"], row["tactic"], row["parameters"])  # noqa: E731
        known = {key(row) for row in kept}
        self.assertEqual([row for row in new if key(row) in known], [], "tried again")
        for row in rows:
            self.assertEqual(row["outcome"] == "ok", float(row["time_us"]) > 0, row)

        os.remove(self.model)
        replay = subprocess.run([str(small_model.EXECUTABLE), "optimize", "--replay", self.record, "--trials", "100", "--json"],
                                capture_output=True, text=True, check=True)
        report = json.loads(replay.stdout)
        self.assertLessEqual(report["chosen_us"], report["default_us"])
        self.assertEqual(sum(w["recorded"] for w in report["workloads"]), len({key(row) for row in rows}))


if __name__ == "__main__":
    sys.exit(unittest.main())
