"""Catches: progress that never comes, an error of the executable that loses its words, options that become wrong flags."""
import sys
import unittest

import numpy as np

import small_model

sys.path.insert(0, str(small_model.ROOT / "python"))
import thrice  # noqa: E402


class OptimizeTest(unittest.TestCase):
    def setUp(self):
        self.model = small_model.folder() / "optimize.onnx"
        small_model.write_model(self.model, 3.0)

    def test_progress_report_and_release(self):
        steps: list = []
        output = small_model.folder() / "optimized.thrice"
        report = thrice.optimize(self.model, output, progress=steps.append, device="opencl:0", dims={"length": 6},
                                 budget="5s", trials=2, cache=small_model.folder() / "cache")
        phases = [step["phase"] for step in steps]
        for phase in ("import", "plan", "tune", "release"):
            self.assertIn(phase, phases)
        self.assertTrue(report["verified"])
        self.assertEqual(report["release"], str(output))
        x, scale = np.ones((2, 8), np.float32), np.ones(8, np.float32)
        y = thrice.load(output, device="opencl:0").run(x, scale)[0]
        np.testing.assert_allclose(y, small_model.expected(x, scale, 3.0), rtol=1e-5, atol=1e-5)

    def test_errors_keep_status_and_words(self):
        with self.assertRaises(thrice.ThriceError) as caught:
            thrice.optimize(small_model.folder() / "absent.onnx", progress=False)
        self.assertEqual(caught.exception.status, "NotFound")
        self.assertIn("absent.onnx", str(caught.exception))
        with self.assertRaises(thrice.InvalidArgumentError) as caught:
            thrice.optimize(self.model, progress=False, bugdet="5s")
        self.assertIn("--bugdet", str(caught.exception))

    def test_an_exception_in_the_callback_ends_the_executable(self):
        def stop(_: dict) -> None:
            raise KeyError("enough")

        with self.assertRaises(KeyError):
            thrice.optimize(self.model, small_model.folder() / "never.thrice", progress=stop, device="null:0",
                            dims={"length": 6}, cache=small_model.folder() / "cache")


if __name__ == "__main__":
    unittest.main()
