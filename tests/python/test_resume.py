"""Catches: a search that loses trials when it is killed, tries them again afterwards, or writes another number of them to the
record than to the store; a replay that needs the model or the device."""
import contextlib
import csv
import json
import os
import signal
import sqlite3
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

    def test_killed_after_the_first_release(self):
        """Catches a release that only the end of the run writes, or one that is half written when the run is killed."""
        release = os.path.join(self.folder, "out.thrice")
        command = [word for word in self.command(1000) if word != "--quiet"] + ["--progress", "json"]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        told, tuned = "", False
        for line in run.stderr:
            event = json.loads(line)
            if event["phase"] == "released":
                told = event["region"]
                self.assertTrue(os.path.exists(release), "told before it was there")
            if event["phase"] == "tune" and event["done"] > 0:
                tuned = True
                break
        self.assertEqual(told, release)
        self.assertTrue(tuned)
        run.send_signal(signal.SIGKILL)
        run.wait()
        run.stderr.close()
        self.assertEqual([name for name in os.listdir(self.folder) if ".tmp-" in name], [])
        check = subprocess.run([str(small_model.EXECUTABLE), "run", release, "--dims", "length=300", "--check", "--device", "opencl:0"],
                               capture_output=True, text=True)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_first_release_and_warm_run(self):
        """Catches a time of the first release that is not one, and a warm run that proves again what the store says is proved."""
        def passed() -> dict:
            with contextlib.closing(sqlite3.connect(os.path.join(self.folder, "store.sqlite"))) as store:
                return {row[:2]: row[2:] for row in store.execute("SELECT workload, schedule, error, unix_time FROM passed")}

        done = subprocess.run(self.command(4) + ["--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        cold, before = json.loads(done.stdout), passed()
        self.assertTrue(0 < cold["first_release_s"] < sum(entry["seconds"] for entry in cold["phases"]))
        names = [entry["phase"] for entry in cold["phases"]]
        self.assertLess(names.index("release"), names.index("tune"))
        self.assertEqual(names.count("release"), 2)
        self.assertTrue(all((r["workload"], r["schedule"]) in before for r in cold["regions"]))

        time.sleep(1.1)  # rows that are written again have another time
        done = subprocess.run([*self.command(0), "--json"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        warm, after = json.loads(done.stdout), passed()
        self.assertTrue(warm["verified"])
        self.assertEqual({key: after[key] for key in before}, before)
        for region in warm["regions"]:
            self.assertEqual(region["error"], after[region["workload"], region["schedule"]][0])


if __name__ == "__main__":
    sys.exit(unittest.main())
