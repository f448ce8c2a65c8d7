"""Agents through the command line: would catch an evaluation that needs a network to be read, an agent that cannot be trained,
shown or used, weights that cost trials, and settings that nobody reads."""
import json
import math
import subprocess
import unittest

from command_line import EXECUTABLE, NOT_FOUND, OK, USAGE, CommandLine, matmul_model


def write_space(path, shift):
    lines = ["tile,vector,time"]
    for a in range(8):
        for b in range(9):
            lines.append(f"{2 ** a},{b},{1 + 0.1 * (a - shift) ** 2 + 0.05 * (b - 2) ** 2}")
    path.write_text("\n".join(lines) + "\n")


@unittest.skipUnless(EXECUTABLE.exists(), "the executable is not built")
class AgentTest(CommandLine):
    def thrice(self, *arguments):
        return subprocess.run([str(EXECUTABLE), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                              env=self.environment, check=False)

    def test_eval_train_info_export(self):
        spaces = self.here / "spaces"
        spaces.mkdir()
        write_space(spaces / "bowl_A.csv", 3)
        write_space(spaces / "bowl_B.csv", 4)
        page = self.here / "page.html"
        run = self.thrice("agent", "eval", "--spaces", spaces, "--agents", "random,actor_critic,actor_critic:transfer",
                          "--repeats", 2, "--trials", 40, "--json", "--html", page)
        self.assertEqual(run.returncode, OK, run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual([t["agent"] for t in report["totals"]], ["random", "actor_critic", "actor_critic:transfer"])
        self.assertTrue(all(math.isfinite(t["score"][0]) for t in report["totals"]))
        text = page.read_text()
        self.assertIn("<svg", text)
        for needs_network in ("http:", "https:", "src=", "<script"):
            self.assertNotIn(needs_network, text)
        trained, samples = self.here / "agent.txt", self.here / "samples.txt"
        self.assertEqual(self.thrice("agent", "export", "--from", spaces, "--output", samples).returncode, OK)
        run = self.thrice("agent", "train", "--from", samples, "--steps", 50, "--output", trained)
        self.assertEqual(run.returncode, OK, run.stderr)
        info = json.loads(self.thrice("agent", "info", trained, "--json").stdout)
        self.assertEqual([(g["tasks"], g["samples"]) for g in info["groups"]], [(2, 144)])
        self.assertEqual(self.thrice("agent", "info").returncode, OK)

    def test_what_is_wrong_is_named(self):
        for arguments, code, word in ((("eval",), USAGE, "--spaces"), (("eval", "--spaces", self.here / "none"), NOT_FOUND, "none"),
                                      (("fly",), USAGE, "tune-rivals"), (("train", "--output", self.here / "x"), USAGE, "--from"),
                                      (("eval", "--spaces", "synthetic", "--noise", "much"), USAGE, "percentage"),
                                      (("eval", "--spaces", "synthetic", "--agents", "oracle"), USAGE, "actor_critic")):
            run = self.thrice("agent", *arguments)
            with self.subTest(arguments):
                self.assertEqual(run.returncode, code, run.stderr)
                self.assertIn(word, run.stderr)

    def test_weights_change_without_trials(self):
        if self.device is None:
            self.skipTest("no OpenCL device")
        model = self.here / "m.onnx"
        matmul_model(model)
        common = ["optimize", model, "--dims", "n=64", "--cache", self.here / "cache", "--output", self.here / "m.thrice",
                  "--device", self.device, "--json", "--quiet"]
        page = self.here / "optimize.html"
        first = self.thrice(*common, "--trials", 8, "--budget", "60s", "--html", page)
        self.assertEqual(first.returncode, OK, first.stderr)
        self.assertIn("<svg", page.read_text())
        config = self.here / "weights.yaml"
        config.write_text("agent_config:\n  reward_weights: {latency: 0.1, throughput: 0.1, memory_usage: 0.8}\n")
        again = self.thrice(*common, "--reweight", "--config", config)
        self.assertEqual(again.returncode, OK, again.stderr)
        self.assertEqual(json.loads(again.stdout)["trials"], 0)


if __name__ == "__main__":
    unittest.main()
