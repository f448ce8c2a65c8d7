"""Would catch a demo that ends well although thrice read a line wrongly, was not verified, failed, or gave NaN as its error.

thrice is played by a small program here: these tests judge the demo, not thrice.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
MODEL = TOOLS.parent / ".models/ch_PP-OCRv4_rec_infer.onnx"

PLAYED = """#!{python}
import json, os, sys
fault = os.environ.get("PLAYED_FAULT", "")
words = sys.argv[1:]
option = lambda name: words[words.index(name) + 1]
if words[0] == "optimize":
    if fault == "crash":
        sys.exit(4)
    print(json.dumps(dict(device="played", original_us=2000.0, best_us=1000.0, speedup=2.0, error_limit=1e-5, trials=3,
                          max_error=float("nan") if fault == "nan" else 1e-7, verified=fault != "unverified")))
else:
    import numpy, onnxruntime
    session = onnxruntime.InferenceSession({model!r}, providers=["CPUExecutionProvider"])
    name, path = option("--input").split("=")
    scores, = session.run(None, {{name: numpy.load(path)}})
    if fault == "wrong" and scores.shape[1] > 20:
        scores = numpy.roll(scores, 1, axis=2)
    numpy.save(option("--output") + "/out_0.npy", scores)
"""


@unittest.skipUnless(MODEL.is_file(), "the OCR model is not in .models (tools/setup.sh --demo)")
class OcrDemo(unittest.TestCase):
    def run_demo(self, fault):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "thrice"
            program.write_text(PLAYED.format(python=sys.executable, model=str(MODEL)))
            program.chmod(0o755)
            command = [sys.executable, TOOLS / "ocr_demo.py", "--thrice", program, "--out", pathlib.Path(folder) / "out", "--lines", "2"]
            done = subprocess.run(
                command, env={**os.environ, "PLAYED_FAULT": fault}, capture_output=True, text=True, check=False
            )
            return done.returncode, done.stdout + done.stderr

    def test_good(self):
        code, text = self.run_demo("")
        self.assertEqual(code, 0, text)
        self.assertIn("OpenCL 1.2", text)

    def test_wrong_words(self):
        code, text = self.run_demo("wrong")
        self.assertEqual(code, 1, text)
        self.assertIn("1 of 2 lines differ", text)

    def test_nan_error_is_no_success(self):
        code, text = self.run_demo("nan")
        self.assertEqual(code, 1, text)
        self.assertIn("above its limit", text)

    def test_unverified(self):
        self.assertEqual(self.run_demo("unverified")[0], 1)

    def test_failed_command(self):
        code, text = self.run_demo("crash")
        self.assertEqual(code, 2, text)
        self.assertIn("exit 4", text)


if __name__ == "__main__":
    unittest.main()
