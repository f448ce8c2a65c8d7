"""Catches: a memory budget that is not kept or is refused without saying what would do, memory that `explain` tells otherwise than
`optimize` measured, a page without its sections."""
import json
import unittest

from command_line import MEMORY, OK, USAGE, CommandLine, matmul_model


class MemoryTest(CommandLine):
    def test_explain_tells_the_memory(self):
        release = self.shared / "null.thrice"
        code, out, err = self.thrice("explain", release, "--json", "--dims", "n=1000")
        self.assertEqual(code, OK, err)
        memory = json.loads(out)["memory"]
        self.assertEqual(memory["extents"], "n=1000")
        self.assertGreaterEqual(memory["pool_bytes"], 2 * 1000 * 16 * 4)  # input and output
        self.assertGreaterEqual(memory["peak_bytes"], memory["lower_bound_bytes"])
        self.assertEqual(memory["weight_bytes"], memory["held_weight_bytes"])
        code, out, err = self.thrice("explain", release)
        self.assertEqual(code, OK, err)
        self.assertIn("device memory at n=", out)

    def test_a_budget_that_cannot_be_kept(self):
        self.optimize_refused(MEMORY, ["1000 bytes", "at least", "raise the budget"], self.model, "--memory-budget", "1KB")
        self.optimize_refused(USAGE, ["--memory-budget", "several"], self.model, "--memory-budget", "several")

    def test_measured_told_and_drawn(self):
        if self.device is None:
            self.skipTest("no OpenCL device")
        matmul_model(self.here / "m.onnx")
        code, out, err = self.thrice("optimize", "m.onnx", "--dims", "n=64", "--output", "m.thrice", "--device", self.device, "--json",
                                     "--quiet", "--no-tune", "--memory-budget", "1MB", "--html", "m.html")
        self.assertEqual(code, OK, err)
        measured = json.loads(out)
        told = json.loads(self.thrice("explain", "m.thrice", "--json")[1])["memory"]
        self.assertEqual(told["extents"], "n=64")
        self.assertEqual(told["weight_bytes"], measured["constant_bytes"])
        self.assertEqual(told["held_weight_bytes"], measured["held_weight_bytes"])
        self.assertEqual(told["arena_lower_bound_bytes"], measured["arena_lower_bound"])
        self.assertLessEqual(told["peak_bytes"], measured["peak_bytes"])
        page = (self.here / "m.html").read_text()
        for section in ("Where the time goes", "Roofline", "Memory", "What was decided", "device memory at n=64"):
            self.assertIn(section, page)
        self.assertNotIn("http", page.replace("http://www.w3.org", ""))


if __name__ == "__main__":
    unittest.main()
