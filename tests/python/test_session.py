"""Catches: a wrong answer or a lost message on the way through ctypes, memory freed under an array, runs of several
threads that share a buffer, a swap that fails a request or mixes two releases, a damaged release that is loaded."""
import ctypes
import gc
import sys
import threading
import unittest

import numpy as np

import small_model

sys.path.insert(0, str(small_model.ROOT / "python"))
import thrice  # noqa: E402
from thrice import _library  # noqa: E402

ONES = np.ones(8, np.float32)


def rows(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, 8)).astype(np.float32)


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = thrice.load(small_model.release(), device="opencl:0")

    def assert_answer(self, answer: tuple, x: np.ndarray, scale: np.ndarray = ONES, bias: float = 1.0) -> None:
        y, same, extents = answer
        np.testing.assert_allclose(y, small_model.expected(x, scale, bias), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(same, x)
        np.testing.assert_array_equal(extents, x.shape)

    def test_description(self):
        self.assertEqual([(p.name, p.dtype.name, p.shape) for p in self.session.inputs],
                         [("x", "float32", ("length", 8)), ("scale", "float32", (8,))])
        self.assertEqual([(p.name, p.dtype.name, p.shape) for p in self.session.outputs],
                         [("y", "float32", ("length", 4)), ("same", "float32", ("length", 8)), ("extents", "int64", (2,))])
        self.assertEqual(self.session.manifest["model_name"], "small")
        self.assertEqual(self.session.device, "opencl:0")

    def test_any_length_by_position_and_by_name(self):
        for count in (1, 6, 7, 300, 0, 6):
            self.assert_answer(self.session.run(rows(count), ONES), rows(count))
        by_name = self.session.run({"scale": 2 * ONES, "x": rows(3)})
        self.assertEqual(list(by_name), ["y", "same", "extents"])
        self.assert_answer(tuple(by_name.values()), rows(3), 2 * ONES)

    def test_inputs_that_are_not_plain_arrays(self):
        x = rows(6)
        self.assert_answer(self.session.run(np.asfortranarray(x), ONES), x)
        self.assert_answer(self.session.run(np.repeat(x, 2, 0)[::2], ONES.astype(">f4")), x)
        self.assert_answer(self.session.run(memoryview(x), ONES), x)
        frozen = x.copy()
        frozen.flags.writeable = False
        self.assert_answer(self.session.run(frozen, ONES), x)

    def test_results_own_their_memory(self):
        x = rows(5)
        first = self.session.run(x, ONES)
        first[1][:] = 7  # "same" is x: writing to it must not change the input, nor a later run
        for _ in range(20):
            self.session.run(rows(5, 3), ONES)
        gc.collect()
        np.testing.assert_array_equal(x, rows(5))
        np.testing.assert_allclose(first[0], small_model.expected(x, ONES, 1.0), rtol=1e-5, atol=1e-5)
        session = thrice.load(small_model.release(), device="opencl:0")
        answer = session.run(x, ONES)
        del session
        gc.collect()
        self.assert_answer(answer, x)

    def test_refusals_name_the_input_and_what_is_expected(self):
        x = rows(4)
        for given, words in [(({"x": x},), ["'scale' is missing", "x, scale"]),
                             (({"x": x, "scale": ONES, "z": x},), ["no input 'z'", "x, scale"]),
                             ((x,), ["1 inputs", "x, scale"]),
                             ((x.astype(np.float64), ONES), ["'x'", "f64", "f32"]),
                             ((x[0], ONES), ["'x'", "rank 2"]),
                             ((x[:, :7], ONES), ["'x'", "[4, 7]", "axis 1 must be 8"]),
                             ((x.astype("complex64"), ONES), ["'x'", "complex64"]),
                             ((np.array(["a"]), ONES), ["'x'"])]:
            with self.subTest(words), self.assertRaises(thrice.InvalidArgumentError) as caught:
                self.session.run(*given)
            for word in words:
                self.assertIn(word, str(caught.exception))
        self.assert_answer(self.session.run(x, ONES), x)  # usable after errors

    def test_two_threads_on_two_sessions_and_on_one(self):
        sessions = [self.session, thrice.load(small_model.release(2.0), device="opencl:0")]
        failures: list = []

        def work(seed: int) -> None:
            session, bias = sessions[seed % 2], 1.0 + seed % 2
            try:
                for i in range(25):
                    x = rows(1 + (seed * 7 + i * 5) % 40, seed * 100 + i)
                    self.assert_answer(session.run(x, ONES), x, bias=bias)
            except BaseException as e:  # noqa: BLE001: reported below
                failures.append(e)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_swap_while_threads_run(self):
        session = thrice.load(small_model.release(1.0), device="opencl:0")
        releases = [small_model.release(1.0), small_model.release(2.0)]
        stop, failures, seen = threading.Event(), [], set()

        def ask(seed: int) -> None:
            while not stop.is_set():
                x = rows(3 + seed, seed)
                try:
                    y = session.run(x, ONES)[0]
                    bias = 1.0 if np.allclose(y, small_model.expected(x, ONES, 1.0), atol=1e-5) else 2.0
                    np.testing.assert_allclose(y, small_model.expected(x, ONES, bias), rtol=1e-5, atol=1e-5)
                    seen.add(bias)
                except BaseException as e:  # noqa: BLE001: reported below
                    failures.append(e)
                    return

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for i in range(1, 8):
            session.swap(releases[i % 2])
        self.assert_answer(session.run(rows(4), ONES), rows(4), bias=2.0)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(seen, {1.0, 2.0})

    def test_swap_refuses_what_does_not_fit(self):
        session = thrice.load(small_model.release(1.0), device="opencl:0")
        damaged = small_model.folder() / "swap_damaged.thrice"
        damaged.write_bytes(small_model.release(2.0).read_bytes()[:-100])
        with self.assertRaises(thrice.ThriceError) as caught:
            session.swap(damaged)
        self.assertEqual(caught.exception.status, "Corrupt")
        with self.assertRaises(thrice.InvalidArgumentError) as caught:
            session.swap(small_model.other_release())
        self.assertIn("'other'", str(caught.exception))
        self.assert_answer(session.run(rows(2), ONES), rows(2))

    def test_damaged_and_missing_releases(self):
        good = small_model.release().read_bytes()
        path = small_model.folder() / "damaged.thrice"
        for at in (0, 9, 40, 200, len(good) // 2, len(good) - 70):
            bad = bytearray(good)
            bad[at] ^= 0x10
            path.write_bytes(bad)
            with self.subTest(at), self.assertRaises(thrice.ThriceError) as caught:
                thrice.load(path, device="opencl:0")
            self.assertIn(caught.exception.status, ("Corrupt", "Unsupported"))  # byte 9: a newer format's number
        for size in (0, 5, 100, len(good) - 1):
            path.write_bytes(good[:size])
            with self.subTest(size), self.assertRaises(thrice.ThriceError) as caught:
                thrice.load(path, device="opencl:0")
            self.assertEqual(caught.exception.status, "Corrupt")
        with self.assertRaises(thrice.ThriceError) as caught:
            thrice.load(small_model.folder() / "absent.thrice")
        self.assertEqual(caught.exception.status, "NotFound")
        with self.assertRaises(thrice.ThriceError) as caught:
            thrice.load(small_model.release(), device="opencl:99")
        self.assertEqual(caught.exception.status, "NotFound")
        self.assertIn("opencl:0", str(caught.exception))

    def test_devices(self):
        self.assertIn("opencl:0", [device["id"] for device in thrice.devices()])
        self.assertEqual([backend["name"] for backend in thrice.backends()], ["cuda", "opencl", "null"])


class AsyncTest(unittest.TestCase):
    """thrice_run_async on an OpenCL queue of the session: the same code as on a CUDA stream, seen through ctypes."""

    def setUp(self):
        self.session = thrice.load(small_model.release(), device="opencl:0")
        self.lib = _library.library()

    def run_async(self, x: np.ndarray) -> ctypes.c_void_p:
        given = [thrice._inputs.input_of(value, "input", None, 0) for value in (x, ONES)]
        tensors = (_library.Tensor * 2)(*[g.tensor for g in given])
        result = ctypes.c_void_p()
        _library.check(self.lib.thrice_run_async(self.session._handle, None, tensors, 2, ctypes.byref(result)))
        return result

    def read(self, result: ctypes.c_void_p, index: int, array: np.ndarray) -> np.ndarray:
        _library.check(self.lib.thrice_read(self.session._handle, None, result, index, array.ctypes.data, array.nbytes))
        return array

    def test_results_stay_apart(self):
        results = [self.run_async(rows(6, seed)) for seed in range(5)]
        _library.check(self.lib.thrice_synchronize(self.session._handle, None))
        for seed, result in enumerate(results):
            x = rows(6, seed)
            np.testing.assert_allclose(self.read(result, 0, np.empty((6, 4), np.float32)),
                                       small_model.expected(x, ONES, 1.0), rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(self.read(result, 1, np.empty((6, 8), np.float32)), x)
            np.testing.assert_array_equal(self.read(result, 2, np.empty(2, np.int64)), [6, 8])
        with self.assertRaises(thrice.InvalidArgumentError):
            self.read(results[0], 0, np.empty(3, np.float32))
        for result in results:
            self.lib.thrice_result_free(result)

    def test_device_results_are_inputs_and_outlive_swap_and_session(self):
        first = self.run_async(rows(6))
        tensors = (_library.Tensor * 2)()
        _library.check(self.lib.thrice_result_tensor(first, 1, ctypes.byref(tensors[0])))  # "same": a device copy of x
        self.assertEqual(tensors[0].memory, _library.DEVICE)
        tensors[1] = thrice._inputs.input_of(ONES, "scale", None, 0).tensor
        self.session.swap(small_model.release(2.0))
        second = ctypes.c_void_p()
        _library.check(self.lib.thrice_run_async(self.session._handle, None, tensors, 2, ctypes.byref(second)))
        self.lib.thrice_result_free(first)
        np.testing.assert_allclose(self.read(second, 0, np.empty((6, 4), np.float32)),
                                   small_model.expected(rows(6), ONES, 2.0), rtol=1e-5, atol=1e-5)
        _library.check(self.lib.thrice_forget_stream(self.session._handle, None))
        del self.session
        gc.collect()
        self.lib.thrice_result_free(second)

    def test_dlpack_export(self):
        result = self.run_async(rows(6))
        array = thrice._outputs.Result(result.value, self.session, None).outputs()[0]
        self.assertEqual(array.__dlpack_device__(), (4, 0))
        np.testing.assert_allclose(np.asarray(array), small_model.expected(rows(6), ONES, 1.0), rtol=1e-5, atol=1e-5)
        capsule = array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        dl = thrice._inputs._DLTensor.from_address(pointer(capsule, b"dltensor"))
        self.assertEqual((dl.device_type, dl.ndim, dl.code, dl.bits, list(dl.shape[:2])), (4, 2, 2, 32, [6, 4]))
        del capsule  # not consumed: its destructor frees the tensor's share
        with self.assertRaises(AttributeError):
            array.__cuda_array_interface__  # noqa: B018

    def test_dlpack_of_host_results(self):
        x = rows(2)
        given = [thrice._inputs.input_of(value, "input", None, 0) for value in (x, ONES)]
        tensors = (_library.Tensor * 2)(*[g.tensor for g in given])
        result, tensor = ctypes.c_void_p(), ctypes.c_void_p()
        _library.check(self.lib.thrice_run(self.session._handle, tensors, 2, ctypes.byref(result)))
        _library.check(self.lib.thrice_result_dlpack(result, 0, ctypes.byref(tensor)))
        self.lib.thrice_result_free(result)  # the export keeps the memory

        class Exporter:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **_):
                return thrice._outputs._new_capsule(tensor.value, b"dltensor", thrice._outputs._destructor)

        y = np.from_dlpack(Exporter())
        np.testing.assert_allclose(y, small_model.expected(x, ONES, 1.0), rtol=1e-5, atol=1e-5)

    def test_null_arguments_are_refused(self):
        self.assertEqual(self.lib.thrice_load(None, None, None), 1)
        self.assertIn(b"path", self.lib.thrice_message())
        self.assertEqual(self.lib.thrice_run(None, None, 0, None), 1)
        self.assertEqual(self.lib.thrice_run(self.session._handle, None, 2, ctypes.byref(ctypes.c_void_p())), 1)
        self.assertEqual(self.lib.thrice_swap(self.session._handle, None), 1)
        self.assertEqual(self.lib.thrice_result_size(None), 0)
        self.lib.thrice_session_free(None)
        self.lib.thrice_result_free(None)


if __name__ == "__main__":
    unittest.main()
