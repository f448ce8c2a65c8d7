"""`thrice cache` on a real device. Would catch: a hit that is told as a miss or the other way round, another device whose differing
fields are not named, a stored time that a second run does not take over."""
import json
import unittest

from command_line import OK, CommandLine


class Explain(CommandLine):
    def explain(self, device):
        code, out, err = self.thrice("cache", "list", "--store", "store.sqlite", "--json")
        self.assertEqual(code, OK, err)
        words = ("cache", "explain", json.loads(out)["workloads"][0]["workload"][:12], "--store", "store.sqlite", "--device", device)
        code, out, err = self.thrice(*words, "--json")
        self.assertEqual(code, OK, err)
        return json.loads(out), self.thrice(*words)[1]

    def test_hit_here_and_miss_elsewhere(self):
        self.need_device()
        code, _, err = self.thrice(*self.optimize(self.model, "--no-tune"))
        self.assertEqual(code, OK, err)
        (answer,), text = self.explain(self.device)
        self.assertTrue(answer["hit"])
        self.assertEqual(answer["differs"], [])
        self.assertRegex(text, r"hit: .*1 trials, 1 verified, best .* us")

        (answer,), text = self.explain("null:0")
        self.assertFalse(answer["hit"])
        fields = [d["field"] for d in answer["differs"]]
        self.assertTrue(any("driver" in f for f in fields), fields)
        self.assertIn("a start for the search, measured anew; what differs:", text)

        code, out, err = self.thrice(*self.optimize(self.model, "--no-tune"))
        self.assertEqual(code, OK, err)
        self.assertEqual(json.loads(out)["trials"], 0, "what is known here is not tried again")


if __name__ == "__main__":
    unittest.main()
