"""Would catch a demo that ends well although thrice read a line wrongly, was not verified, failed, or gave NaN as its error.

thrice is played by a small program here: these tests judge the demo, not thrice.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import results_file  # noqa: E402

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
MODEL = TOOLS.parent / ".models/ch_PP-OCRv4_rec_infer.onnx"

PLAYED = """#!{python}
import json, os, sys
fault = os.environ.get("PLAYED_FAULT", "")
if fault == "crash":
    sys.exit(4)
print(json.dumps(dict(device="played", original_us=2000.0, best_us=1000.0, speedup=2.0, error_limit=1e-5, trials=3,
                      peak_bytes=1, original_peak_bytes=2,
                      max_error=float("nan") if fault == "nan" else 1e-7, verified=fault != "unverified")))
"""

PLAYED_PACKAGE = """
import os
import numpy, onnxruntime
class Session:
    def __init__(self):
        self.inner = onnxruntime.InferenceSession({model!r}, providers=["CPUExecutionProvider"])
    def run(self, inputs):
        scores, = self.inner.run(None, inputs)
        if os.environ.get("PLAYED_FAULT") == "wrong" and scores.shape[1] > 20:
            scores = numpy.roll(scores, 1, axis=2)
        return {{"scores": scores}}
def load(path):
    return Session()
"""


@unittest.skipUnless(MODEL.is_file(), "the OCR model is not in .models (tools/setup.sh --demo)")
class OcrDemo(unittest.TestCase):
    def run_demo(self, fault):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            program = folder / "thrice"
            program.write_text(PLAYED.format(python=sys.executable))
            program.chmod(0o755)
            (folder / "package").mkdir()
            (folder / "package/thrice.py").write_text(PLAYED_PACKAGE.format(model=str(MODEL)))
            command = [sys.executable, TOOLS / "ocr_demo.py", "--build", folder, "--out", folder / "out", "--lines", "2",
                       "--json", folder / "kept.json"]
            environment = {**os.environ, "PLAYED_FAULT": fault, "PYTHONPATH": str(folder / "package")}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            self.kept = json.loads((folder / "kept.json").read_text()) if (folder / "kept.json").is_file() else None
            return done.returncode, done.stdout + done.stderr

    def test_good(self):
        code, text = self.run_demo("")
        self.assertEqual(code, 0, text)
        self.assertIn("OpenCL 1.2", text)
        self.assertEqual(results_file.problems(self.kept), [])
        inside, outside = self.kept["cases"]
        self.assertIn("2 of 2 lines", inside["note"])
        self.assertIn("onnxruntime_cpu", outside["rivals"])

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
