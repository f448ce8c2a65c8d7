"""Catches a step that calls a CUDA text built although the compiler refused it, or that leaves texts or architectures out."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import cuda_texts  # noqa: E402

GOOD = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = ONE; }\n'


class CudaTexts(unittest.TestCase):
    def setUp(self):
        self.build = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.build.name) / "cuda_texts"
        self.folder.mkdir()
        (self.folder / "prelude.cuh").write_text("#define ONE 1.0f\n")
        (self.folder / "options.txt").write_text("--std=c++17\n")

    def tearDown(self):
        self.build.cleanup()

    def put(self, name, tactic, text):
        (self.folder / f"{name}.cu").write_text(f"// {tactic} threads=32\n{text}")

    def run_tool(self):
        done = subprocess.run([sys.executable, ROOT / "tools/cuda_texts.py", self.build.name, "--jobs", "1"], capture_output=True, text=True, check=False)
        if "skipped:" in done.stdout:
            self.skipTest(done.stdout.splitlines()[0])
        return done

    def test_every_tactic_has_texts_for_all_architectures(self):
        for i in range(30):
            self.put(f"a{i:02}", "map/flat", GOOD + "//" + "x" * i)
        self.put("b", "row/block", GOOD)
        wanted = cuda_texts.architectures_of(self.folder, every=False)
        self.assertEqual(len(wanted), 31)
        self.assertIs(wanted[self.folder / "b.cu"], cuda_texts.ALL)
        self.assertEqual(sum(a is cuda_texts.ALL for a in wanted.values()), 1 + cuda_texts.SPREAD)
        self.assertTrue(all(a is cuda_texts.ALL for a in cuda_texts.architectures_of(self.folder, every=True).values()))

    def test_good_text_is_built_once_and_bad_text_fails(self):
        self.put("good", "map/flat", GOOD)
        done = self.run_tool()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.endswith("9 passed, 0 failed\n"), done.stdout)
        self.put("bad", "map/flat", GOOD.replace("ONE", "TWO"))
        done = self.run_tool()
        self.assertEqual(done.returncode, 1)
        self.assertIn("TWO", done.stdout)
        self.assertIn("9 known from before", done.stdout)
        self.assertTrue(done.stdout.endswith("9 passed, 9 failed\n"), done.stdout)

    def test_no_texts_is_a_failure(self):
        self.assertEqual(self.run_tool().returncode, 1)


if __name__ == "__main__":
    unittest.main()
