"""Would catch: releases that lack an architecture which --target named, or that claim to be verified where nothing ran."""
import json
import subprocess
import unittest

from command_line import OK, ROOT, UNSUPPORTED, USAGE, CommandLine


class Target(CommandLine):
    def setUp(self):
        super().setUp()
        found = subprocess.run([ROOT / "tools/find_nvrtc.sh"], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            self.skipTest("no NVRTC: tools/setup.sh --test")
        self.environment = self.environment | {"THRICE_NVRTC": found.stdout.strip()}

    def test_several_architectures_without_a_card(self):
        code, out, err = self.thrice("optimize", self.model, "--target", "cuda:sm_80,sm_90a", "--output", "out.thrice", "--json")
        self.assertEqual(code, OK, err)
        report = json.loads(out)
        manifest = json.loads(self.thrice("explain", "out.thrice", "--json")[1])["manifest"]
        cubins = [b for b in manifest["binaries"] if b["format"] == "cubin"]  # PTX may lie beside them
        self.assertEqual(sorted({b["architecture"] for b in cubins}), ["sm_80", "sm_90a"])
        self.assertEqual(len(cubins), 2 * len({p["source_key"] for p in manifest["programs"]}))
        if report["target"].startswith("cuda:sm"):  # else a card of this machine did run it
            self.assertFalse(report["verified"])
            self.assertIn("nothing was run", " ".join(report["notes"]))
        self.refused(UNSUPPORTED, ["sm_80", "sm_90a"], "run", "out.thrice", "--target", "null:0")

    def test_bad_targets(self):
        self.optimize_refused_with("cuda:sm_12345", ["sm_12345", "cuda:sm_90a"])
        self.optimize_refused_with("cuda:sm_20", ["sm_20"])
        self.optimize_refused_with("cuda:sm_12", ["sm_12", "sm_80", "sm_120a"])  # no such card
        self.optimize_refused_with("cuda:sm_95", ["sm_95", "sm_90a", "NVRTC"])   # NVRTC knows better than we do
        self.refused(USAGE, ["optimize"], "run", self.null_release, "--target", "cuda:sm_80")
        self.refused(USAGE, ["--target", "--device"], "run", self.null_release, "--target", "null:0", "--device", "opencl:0")

    def optimize_refused_with(self, target, words):
        self.refused(USAGE, words, "optimize", self.model, "--target", target, "--output", "out.thrice")
        self.assertFalse((self.here / "out.thrice").exists())

    def test_target_and_device_are_one(self):
        for flags in (["--target", "null:0"], ["--device", "null:0"], ["--target", "null:0", "--device", "null:0"]):
            code, out, err = self.thrice("optimize", self.model, *flags, "--output", "out.thrice", "--json")
            self.assertEqual(code, OK, err)
            self.assertEqual(json.loads(out)["target"], "null:0")


if __name__ == "__main__":
    unittest.main()
