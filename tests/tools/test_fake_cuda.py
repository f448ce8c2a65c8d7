"""The command line on the scripted driver (tests/fake_cuda). Would catch: cards or slices of cards that are not listed, an old or
broken driver that is not told from none, a card's error that ends a command without words or with the wrong exit code."""
import json
import unittest

from command_line import EXECUTABLE, MEMORY, NOT_FOUND, OK, CommandLine

LAUNCH, WRONG = 10, 12
CARDS = """cards 2
name NVIDIA H200
uuid 5e1f0a7c-0000-0000-0000-000000000001
card 1
name NVIDIA H200 MIG 1g.18gb
uuid abcdef01-2345-6789-abcd-ef0123456789
units 16
"""


class FakeCuda(CommandLine):
    def setUp(self):
        super().setUp()
        self.use("fake_cuda", CARDS)

    def use(self, folder, script):
        fake = EXECUTABLE.parent / folder
        if not (fake / "libcuda.so.1").exists():
            self.skipTest(f"{fake} is not built")
        (self.here / "script").write_text(script)
        self.environment = self.environment | {"LD_LIBRARY_PATH": str(fake), "FAKE_CUDA_SCRIPT": str(self.here / "script"),
                                               "THRICE_NVRTC": str(EXECUTABLE.parent / "fake_cuda" / "libnvrtc.so.12"),
                                               "THRICE_CUBLASLT": "off", "THRICE_CUDNN": "off"}

    def listed(self):
        code, out, err = self.thrice("devices")
        self.assertEqual(code, OK, err)
        return out

    def finding(self, what):
        _, out, _ = self.thrice("doctor", "--json")
        return next(f for f in json.loads(out)["findings"] if f["what"] == what)

    def test_cards_and_slices(self):
        out = self.listed()
        self.assertIn("NVIDIA H200 MIG 1g.18gb", out)
        self.assertIn("CUDA 12.8", out)
        code, out, err = self.thrice("devices", "--json")
        self.assertEqual(code, OK, err)
        cuda = next(b for b in json.loads(out)["backends"] if b["name"] == "cuda")
        self.assertTrue(cuda["available"])
        self.assertEqual([(d["id"], d["uuid"], d["compute_units"], d["architecture"]) for d in cuda["devices"]],
                         [("cuda:0", "GPU-5e1f0a7c-0000-0000-0000-000000000001", 132, "sm_90a"),
                          ("cuda:1", "MIG-abcdef01-2345-6789-abcd-ef0123456789", 16, "sm_90a")])
        self.assertTrue(self.finding("cuda device")["ok"])

    def test_a_driver_that_is_too_old(self):
        self.use("fake_cuda", "driver 11040\n")
        self.assertRegex(self.listed(), "no cuda: the NVIDIA driver serves CUDA 11.4 only; update it to 525")
        self.assertIn("CUDA 11.4", self.finding("cuda device")["detail"])

    def test_a_driver_that_lacks_a_function(self):
        self.use("fake_cuda_old", CARDS)
        self.assertIn("no cuda: libcuda.so.1 has no cuGraphExecChildGraphNodeSetParams: the NVIDIA driver is older than 525",
                      self.listed())
        found = self.finding("cuda device")
        self.assertFalse(found["ok"])
        self.assertIn("cuGraphExecChildGraphNodeSetParams", found["detail"])
        self.assertIn("525", found["remedy"])

    def test_a_driver_that_does_not_start_or_shows_nothing(self):
        self.use("fake_cuda", "init 100\n")
        self.assertIn("no cuda: the NVIDIA driver does not start: CUDA_ERROR_NO_DEVICE", self.listed())
        self.use("fake_cuda", "cards 0\n")
        self.assertIn("no cuda: the NVIDIA driver is there, but shows no card", self.listed())

    def test_a_card_that_is_not_there_names_those_that_are(self):
        self.optimize_fails(NOT_FOUND, ["cuda:7", "cuda:0 (GPU-5e1f0a7c-", "cuda:1 (MIG-abcdef01-"], "cuda:7")

    def optimize_fails(self, code, words, device="cuda:0"):
        self.refused(code, words, "optimize", self.model, "--dims", "n=4", "--target", device, "--output", "out.thrice", "--store",
                     self.here / "store.sqlite", "--cache", self.here / "cache", "--no-tune")
        self.assertEqual(list(self.here.glob("out.thrice*")), [], "something was released")

    def test_out_of_memory_names_the_bytes(self):
        self.use("fake_cuda", "memory 1500\n")
        self.optimize_fails(MEMORY, ["cuda:0: allocating", "bytes", "OUT_OF_MEMORY"])

    def test_an_illegal_address_is_told(self):
        self.use("fake_cuda", "fail StreamSynchronize 3 700\n")
        self.optimize_fails(LAUNCH, ["cuda:0", "ILLEGAL_ADDRESS", "start the process anew"])

    def test_kernels_that_compute_nothing_are_not_released(self):
        self.optimize_fails(WRONG, ["region", "never written"])


if __name__ == "__main__":
    unittest.main()
