"""Would catch: a library command that loses operators, imports without ranges, or says nothing where the store is empty."""
import json
import unittest

from command_line import MODEL, NOT_FOUND, OK, ROOT, USAGE, CommandLine


class Library(CommandLine):
    def test_update_list_show_stats(self):
        self.refused(NOT_FOUND, ["thrice library update"], "library", "list", "--store", "s.sqlite")
        code, out, err = self.thrice("library", "update", "--folder", ROOT / "library/operators", "--store", "s.sqlite", "--json")
        self.assertEqual(code, OK, err)
        count = json.loads(out)["operators"]
        self.assertGreaterEqual(count, 1000)
        stats = json.loads(self.thrice("library", "stats", "--store", "s.sqlite", "--json")[1])
        self.assertEqual(stats["operators"], count)
        self.assertEqual(stats["distinct"], count)
        self.assertEqual(sum(stats["length"].values()), count)
        chosen = json.loads(self.thrice("library", "list", "--store", "s.sqlite", "--split", "variable", "--json")[1])
        self.assertEqual(len(chosen), stats["split"]["variable"])
        self.assertTrue(all(e["length"] == "variable" and e["extents"] for e in chosen))
        convolution = next(e for e in chosen if e["kind"] == "Conv")
        shown = json.loads(self.thrice("library", "show", convolution["id"], "--store", "s.sqlite", "--json")[1])
        self.assertEqual(shown[0]["operands"], convolution["operands"])
        self.assertTrue(shown[0]["nearest"])
        self.assertNotIn(convolution["id"], [n["id"] for n in shown[0]["nearest"]])
        self.refused(NOT_FOUND, ["zzzz"], "library", "show", "zzzz", "--store", "s.sqlite")

    def test_import_and_what_tuning_learned(self):
        self.refused(USAGE, ["--range n="], "library", "import", self.model, "--store", "s.sqlite")
        self.refused(USAGE, ["sequence=1..512@128"], "library", "import", self.model, "--range", "n=5", "--store", "s.sqlite")
        self.refused(USAGE, ["library import needs"], "library", "import", "--store", "s.sqlite")
        (self.here / "broken.onnx").write_bytes(b"\xff\xff\xff")
        self.refused(MODEL, ["broken.onnx"], "library", "import", "broken.onnx", "--store", "s.sqlite")
        flags = ["--range", "n=1..512@128", "--name", "small", "--json", "--store", "s.sqlite"]
        code, out, err = self.thrice("library", "import", self.model, *flags)
        self.assertEqual(code, OK, err)
        self.assertEqual(json.loads(out), {"network": "small", "operators": 2, "new": 2, "known": 2})
        self.assertEqual(json.loads(self.thrice("library", "import", self.model, *flags)[1])["new"], 0)
        if self.device is None:
            self.skipTest("no OpenCL device")
        code, out, err = self.thrice("optimize", self.model, "--dims", "n=128", "--device", self.device, "--budget", "2s", "--json",
                                     "--store", "s.sqlite", "--output", "o.thrice")
        self.assertEqual(code, OK, err)
        self.assertGreaterEqual(json.loads(self.thrice("library", "stats", "--store", "s.sqlite", "--json")[1])["bests"], 1)


if __name__ == "__main__":
    unittest.main()
