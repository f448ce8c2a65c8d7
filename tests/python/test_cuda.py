"""Catches, on a CUDA card with torch: copies that should not happen, work on the wrong stream, memory that grows or is freed
too early, results that another thread or a swap spoils. Elsewhere every test is skipped with the reason."""
import ctypes
import gc
import sys
import threading
import unittest

import numpy as np

import small_model

sys.path.insert(0, str(small_model.ROOT / "python"))
import thrice  # noqa: E402

try:
    import torch

    REASON = "" if torch.cuda.is_available() else "torch sees no CUDA card"
except ImportError:
    REASON = "torch is not installed"
DEVICE = "cuda:0"


def rows(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, 8)).astype(np.float32)


@unittest.skipIf(REASON, REASON)
class CudaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = thrice.load(small_model.release(1.0, DEVICE), device=DEVICE)
        cls.scale = torch.ones(8, device="cuda")

    def assert_answer(self, answer, x, bias: float = 1.0) -> None:
        y, same, extents = (np.asarray(a.cpu() if isinstance(a, torch.Tensor) else a) for a in answer)
        x = np.asarray(x)
        np.testing.assert_allclose(y, small_model.expected(x, np.ones(8), bias), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(same, x)
        np.testing.assert_array_equal(extents, x.shape)

    def test_numpy(self):
        for count in (6, 1, 500, 0):
            answer = self.session.run(rows(count), np.ones(8, np.float32))
            self.assertIsInstance(answer[0], np.ndarray)
            self.assert_answer(answer, rows(count))

    def test_torch_tensors_in_and_out(self):
        for count in (6, 1, 500):
            x = torch.from_numpy(rows(count)).cuda()
            answer = self.session.run({"x": x, "scale": self.scale})
            self.assertTrue(all(isinstance(a, torch.Tensor) and a.is_cuda for a in answer.values()))
            self.assertNotEqual(answer["same"].data_ptr(), x.data_ptr())
            self.assert_answer(tuple(answer.values()), rows(count))
        cpu = self.session.run(torch.from_numpy(rows(3)), torch.ones(8))
        self.assertFalse(cpu[0].is_cuda)
        self.assert_answer(cpu, rows(3))

    def test_views_gradients_and_odd_addresses(self):
        base = torch.from_numpy(rows(33)).cuda()
        self.assert_answer(self.session.run(base[1:], self.scale), rows(33)[1:])  # 32 bytes in: copied, still right
        self.assert_answer(self.session.run(base[::2], self.scale), rows(33)[::2])
        self.assert_answer(self.session.run(base.clone().requires_grad_(), self.scale), rows(33))
        with self.assertRaises(thrice.InvalidArgumentError):
            self.session.run(base.to("meta"), self.scale)

    def test_current_stream_orders_the_run(self):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for seed in range(20):
                x = torch.zeros(4096, 8, device="cuda")
                torch.cuda._sleep(2_000_000)  # the copy below is late: a run on another stream would read zeros
                x.copy_(torch.from_numpy(rows(4096, seed)).pin_memory(), non_blocking=True)
                y, _, _ = self.session.run(x, self.scale)
                z = y + 0  # reads on the same stream
                del y
                np.testing.assert_allclose(z.cpu().numpy(), small_model.expected(rows(4096, seed), np.ones(8), 1.0),
                                           rtol=1e-5, atol=1e-5)
        self.session.forget_stream(stream.cuda_stream)

    def test_device_arrays_without_torch_inputs(self):
        class Foreign:  # as CuPy and Numba show their arrays
            def __init__(self, tensor):
                self.tensor = tensor
                self.__cuda_array_interface__ = dict(tensor.__cuda_array_interface__)

        class Exporter:
            def __init__(self, tensor):
                self.tensor = tensor

            def __dlpack__(self, stream=None):
                return self.tensor.__dlpack__(stream=stream)

            def __dlpack_device__(self):
                return self.tensor.__dlpack_device__()

        x = torch.from_numpy(rows(7)).cuda()
        torch.cuda.synchronize()
        for wrap in (Foreign, Exporter):
            answer = self.session.run(wrap(x), wrap(self.scale))
            self.assertIsInstance(answer[0], thrice.DeviceArray)
            self.assert_answer([a.numpy() for a in answer], rows(7))
            taken = torch.from_dlpack(answer[0])
            self.assertEqual(taken.data_ptr(), answer[0].__cuda_array_interface__["data"][0])
            other = torch.as_tensor(answer[1], device="cuda")
            del answer
            gc.collect()
            self.assert_answer((taken, other, np.array([7, 8])), rows(7))

    def test_results_outlive_the_session(self):
        session = thrice.load(small_model.release(1.0, DEVICE), device=DEVICE)
        answers = [session.run(torch.from_numpy(rows(5, s)).cuda(), self.scale) for s in range(10)]
        del session
        gc.collect()
        for s, answer in enumerate(answers):
            self.assert_answer(answer, rows(5, s))

    def test_two_threads_two_sessions_each_on_a_stream_with_swaps(self):
        sessions = [self.session, thrice.load(small_model.release(1.0, DEVICE), device=DEVICE)]
        failures: list = []

        def work(seed: int) -> None:
            try:
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    for i in range(100):
                        x = rows(1 + (seed + i * 5) % 40, seed * 100 + i)
                        y, same, _ = sessions[seed % 2].run(torch.from_numpy(x).cuda(), self.scale)
                        np.testing.assert_array_equal(same.cpu().numpy(), x)
                        bias = float(np.median(y.cpu().numpy() - small_model.expected(x, np.ones(8), 0.0)))
                        self.assertAlmostEqual(bias, round(bias), places=4)
                        self.assertIn(round(bias), (1, 2) if seed % 2 else (1,))
                sessions[seed % 2].forget_stream(stream.cuda_stream)
            except BaseException as e:  # noqa: BLE001: reported below
                failures.append(e)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for i in range(6):
            sessions[1].swap(small_model.release(1.0 + i % 2, DEVICE))
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_ten_thousand_runs_take_no_memory(self):
        xs = [torch.from_numpy(rows(count)).cuda() for count in (6, 64, 500)]
        for x in xs * 3:
            self.session.run(x, self.scale)
        torch.cuda.synchronize()
        before = torch.cuda.mem_get_info()[0]
        for i in range(10_000):
            self.session.run(xs[i % 3], self.scale)
        torch.cuda.synchronize()
        self.assertGreaterEqual(torch.cuda.mem_get_info()[0], before - (1 << 20))
        self.assert_answer(self.session.run(xs[0], self.scale), rows(6))

    def test_wrong_device_is_refused(self):
        with self.assertRaises(thrice.InvalidArgumentError) as caught:
            self.session.run(torch.ones(2, 8, device="cuda", dtype=torch.float64), self.scale)
        self.assertIn("f64", str(caught.exception))
        host = next((d["id"] for d in thrice.devices() if not d["id"].startswith("cuda")), None)
        session = thrice.load(small_model.release(1.0, host), device=host)
        with self.assertRaises(thrice.InvalidArgumentError) as caught:
            session.run(torch.ones(2, 8, device="cuda"), self.scale)
        self.assertIn("no CUDA device", str(caught.exception))

    def test_null_stream_through_the_c_interface(self):
        lib = thrice._library.library()
        x = torch.from_numpy(rows(4)).cuda()
        given = [thrice._inputs.input_of(value, "input", 0, 0) for value in (x, self.scale)]
        tensors = (thrice._library.Tensor * 2)(*[g.tensor for g in given])
        result = ctypes.c_void_p()
        thrice._library.check(lib.thrice_run_async(self.session._handle, None, tensors, 2, ctypes.byref(result)))
        answer = thrice._outputs.Result(result.value, self.session, None).outputs()
        self.assert_answer([a.numpy() for a in answer], rows(4))


if __name__ == "__main__":
    unittest.main()
