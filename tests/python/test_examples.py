"""Catches: an example that no longer builds, runs, or does what its first lines say."""
import os
import subprocess
import sys
import unittest

import small_model


class ExamplesTest(unittest.TestCase):
    def run_example(self, *command: object) -> str:
        environment = {**os.environ, "PYTHONPATH": str(small_model.ROOT / "python")}
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_c_program(self):
        text = self.run_example(small_model.BUILD / "example_01_run", small_model.release(), 5)
        self.assertIn("output y f32 5x4 first 1\n", text)

    def test_cpp_program(self):
        text = self.run_example(small_model.BUILD / "example_02_swap", small_model.release(1.0), small_model.release(2.0), 3)
        self.assertIn(", 0 failed", text)

    def test_python_script(self):
        model = small_model.folder() / "example.onnx"
        small_model.write_model(model, 1.0)
        text = self.run_example(sys.executable, small_model.ROOT / "examples/03_optimize_and_run.py", model, "--device",
                                "opencl:0", "--budget", "5s", "--extent", 4, "--output", small_model.folder() / "example.thrice")
        self.assertIn("y float32 (4, 4)", text)


if __name__ == "__main__":
    unittest.main()
