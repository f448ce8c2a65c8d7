"""Bad input through the real command line: would catch a crash, a wrong exit code (docs/exit_codes.md), a message that does
not say what, where and what to do, and lost work (an earlier release, finished trials)."""
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

import numpy
from command_line import COMPILE, CORRUPT, EXECUTABLE, IO, MODEL, NOT_FOUND, OK, UNSUPPORTED, USAGE, WRONG, CommandLine, matmul_model, write_model
from onnx import TensorProto, helper


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1:]


class BadModels(CommandLine):
    def test_missing(self):
        self.optimize_refused(NOT_FOUND, ["nowhere.onnx", "no such file"], "nowhere.onnx")
        self.refused(NOT_FOUND, ["nowhere.onnx"], "inspect", "nowhere.onnx")

    def test_a_folder(self):
        self.optimize_refused(MODEL, ["not a regular file"], self.here)

    def test_empty(self):
        (self.here / "empty.onnx").touch()
        self.optimize_refused(MODEL, ["empty.onnx", "export it again"], "empty.onnx")

    def test_truncated(self):
        whole = self.model.read_bytes()
        for cut in (1, 2, 7, 20, len(whole) // 4, len(whole) // 2, len(whole) - 200, len(whole) - 20, len(whole) - 1):
            (self.here / "cut.onnx").write_bytes(whole[:cut])
            with self.subTest(cut=cut):
                self.optimize_refused(MODEL, ["cut.onnx", "again"] if cut > 20 else ["cut.onnx"], "cut.onnx")
                self.refused(MODEL, ["cut.onnx", "again"] if cut > 20 else ["cut.onnx"], "strip", "cut.onnx", "out.onnx")

    def test_random_bytes(self):
        for seed in range(8):
            (self.here / "noise.onnx").write_bytes(random.Random(seed).randbytes(100 << seed))
            with self.subTest(seed=seed):
                self.optimize_refused(MODEL, ["noise.onnx"], "noise.onnx")

    def test_huge_declared_sizes(self):
        for declared in (1 << 20, (1 << 31) - 1, (1 << 40), (1 << 63) + 5):
            (self.here / "huge.onnx").write_bytes(b"\x08\x08\x3a" + varint(declared) + b"\x0a\x03abc")
            with self.subTest(declared=declared):
                self.optimize_refused(MODEL, ["huge.onnx"], "huge.onnx")

    def test_deep_nesting(self):
        body = b""
        for _ in range(2000):  # GraphProto.node.attribute.g of itself
            attribute = b"\x32" + varint(len(body)) + body
            node = b"\x2a" + varint(len(attribute)) + attribute
            body = b"\x0a" + varint(len(node)) + node
        (self.here / "deep.onnx").write_bytes(b"\x08\x08\x3a" + varint(len(body)) + body)
        self.optimize_refused(MODEL, ["deep.onnx"], "deep.onnx")

    def test_cycle(self):
        write_model(self.here / "cycle.onnx", [helper.make_node("Add", ["x", "b"], ["a"], name="first"),
                                               helper.make_node("Relu", ["a"], ["b"], name="second")], {"x": [4]}, {"b": [4]})
        self.optimize_refused(MODEL, ["cycl", "first"], "cycle.onnx")

    def test_missing_initialiser(self):
        write_model(self.here / "open.onnx", [helper.make_node("Add", ["x", "weights"], ["z"], name="sum")], {"x": [4]}, {"z": [4]})
        self.optimize_refused(MODEL, ["weights", "sum"], "open.onnx")

    def test_structure_without_weights(self):
        matmul_model(self.here / "wide.onnx", width=100)
        self.assertEqual(self.thrice("strip", "wide.onnx", "bare.onnx")[0], OK)
        code, out, _ = self.thrice("inspect", "bare.onnx")  # shows no value, so needs none
        self.assertEqual((code, "MatMul" in out), (OK, True))
        self.optimize_refused(MODEL, ["'w'", "--random-weights"], "bare.onnx", "--dims", "n=4")

    def test_absurd_dimensions(self):
        for dims in ([1 << 62], [1 << 40, 1 << 40], [-5], [3, 5]):
            tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"\0" * 16)
            write_model(self.here / "absurd.onnx", [helper.make_node("Add", ["x", "w"], ["z"])], {"x": [4]}, {"z": [4]}, [tensor])
            with self.subTest(dims=dims):
                self.optimize_refused(MODEL, ["'w'"], "absurd.onnx")

    def test_external_data(self):
        (self.here / "models").mkdir()
        (self.here / "secret").write_bytes(b"\0" * 4096)
        for location in ("../secret", str(self.here / "secret"), "sub/../../secret"):
            matmul_model(self.here / "models/outside.onnx", external=location)
            with self.subTest(location=location):
                self.optimize_refused(MODEL, ["'w'", "folder"], "models/outside.onnx")
        os.symlink(self.here / "secret", self.here / "models/link")
        matmul_model(self.here / "models/outside.onnx", external="link")
        self.optimize_refused(MODEL, ["'w'"], "models/outside.onnx")
        matmul_model(self.here / "models/outside.onnx", external="absent")
        self.optimize_refused(NOT_FOUND, ["absent"], "models/outside.onnx")
        (self.here / "models/short").write_bytes(b"\0" * 100)
        matmul_model(self.here / "models/outside.onnx", external="short")
        self.optimize_refused(MODEL, ["'w'", "short"], "models/outside.onnx")

    def test_no_outputs(self):
        write_model(self.here / "mute.onnx", [helper.make_node("Relu", ["x"], ["z"])], {"x": [4]}, {})
        self.optimize_refused(MODEL, ["no output"], "mute.onnx")

    def test_every_result_infinite(self):
        self.need_device()
        write_model(self.here / "zero.onnx", [helper.make_node("Div", ["x", "none"], ["z"])], {"x": [4]}, {"z": [4]},
                    [helper.make_tensor("none", TensorProto.FLOAT, [4], [0.0] * 4)])
        self.refused(WRONG, ["'z'", "division by zero"], "optimize", "zero.onnx", "--device", self.device, "--no-tune", "--output",
                     "out.thrice")
        self.assertFalse((self.here / "out.thrice").exists())

    def test_unknown_operator(self):
        write_model(self.here / "odd.onnx", [helper.make_node("Frobnicate", ["x"], ["z"], name="odd one")], {"x": [4]}, {"z": [4]})
        self.optimize_refused(UNSUPPORTED, ["Frobnicate", "odd one", "opset"], "odd.onnx")


class BadArguments(CommandLine):
    def test_flags(self):
        self.refused(USAGE, ["--frobnicate", "--help"], "optimize", self.model, "--frobnicate")
        self.refused(USAGE, ["--help"], "frobnicate")
        self.refused(USAGE, ["--help"])
        self.refused(USAGE, ["model", "--help"], "optimize")
        self.refused(USAGE, ["--budget", "soon"], "optimize", self.model, "--budget", "soon")
        self.refused(USAGE, ["--trials", "many"], "optimize", self.model, "--device", "null:0", "--trials", "many")
        self.refused(USAGE, ["--seed"], "optimize", self.model, "--device", "null:0", "--seed", "99999999999999999999")
        self.refused(USAGE, ["width", "n"], "optimize", self.model, "--device", "null:0", "--dims", "width=3")
        self.refused(USAGE, ["--dims", "none"], "optimize", self.model, "--device", "null:0", "--dims", "n=none")
        self.refused(USAGE, ["agent", "oracle", "greedy"], "optimize", self.model, "--device", "null:0", "--agent", "oracle")
        self.refused(USAGE, ["planner", "wise", "greedy"], "optimize", self.model, "--device", "null:0", "--planner", "wise")
        self.refused(USAGE, ["--trials"], "optimize", self.model, "--device", "null:0", "--trials", "-1")
        self.refused(USAGE, ["loud", "warning"], "inspect", self.model, "--log", "loud")

    def test_device(self):
        self.refused(NOT_FOUND, ["null:7", "null:0"], "optimize", self.model, "--device", "null:7")
        self.refused(NOT_FOUND, ["abacus", "null:0"], "run", self.null_release, "--device", "abacus")
        self.refused(NOT_FOUND, ["cuda:99"], "run", self.null_release, "--device", "cuda:99")

    def test_the_model_is_not_overwritten(self):
        shutil.copy(self.model, self.here / "mine.onnx")
        os.link(self.here / "mine.onnx", self.here / "also_mine")
        before = self.model.read_bytes()
        for name in ("mine.onnx", "./mine.onnx", "also_mine"):
            self.refused(USAGE, ["--output", "model itself"], "optimize", "mine.onnx", "--device", "null:0", "--output", name)
            self.refused(USAGE, ["model itself"], "strip", "mine.onnx", name)
            self.assertEqual((self.here / "mine.onnx").read_bytes(), before)

    def test_one_kind_of_file_for_another(self):
        self.refused(MODEL, ["release", "thrice run"], "inspect", self.null_release)
        self.refused(MODEL, ["release", "thrice run"], "optimize", self.null_release, "--device", "null:0", "--output", "out.thrice")
        self.refused(CORRUPT, ["thrice optimize"], "explain", self.model)

    def test_results_that_cannot_be_written(self):
        (self.here / "file").touch()
        for folder in ("file", "file/below", "/proc/none"):
            self.refused(IO, [folder], "run", self.null_release, "--device", "null:0", "--output", folder)

    def test_settings_file(self):
        cases = {"budgett: 5m\n": ["budgett", "budget", "1"], "agent:\n  - greedy\n": ["agent"], "budget: 5 parsecs\n": ["parsecs"],
                 "agent_config: {hardware_constraints: {max_temp: 85X}}\n": ["85X"], "agent: [\n": [],
                 "a: " * 4: [], "[" * 5000: [], "{a: " * 5000: [], "agent: " + "x" * (2 << 20): [], "\0\x01\x02": [],
                 "a: &a [*a]\n": [], "agent_config: {reward_weights: {latency: nan}}\n": ["latency"]}
        for text, words in cases.items():
            (self.here / "s.yaml").write_text(text)
            with self.subTest(text=text[:40]):
                self.refused(USAGE, ["s.yaml", *words], "optimize", self.model, "--device", "null:0", "--config", "s.yaml")
        self.refused(NOT_FOUND, ["none.yaml"], "optimize", self.model, "--device", "null:0", "--config", "none.yaml")
        self.assertEqual(list(self.here.glob("*.thrice")), [])


class BadFilesOfOurs(CommandLine):
    def test_damaged_release(self):
        whole = self.null_release.read_bytes()
        for place in [0, 3, 8, 12, 16, 40, 48, 60, 100, 200] + [len(whole) * i // 20 for i in range(1, 20)]:
            (self.here / "bad.thrice").write_bytes(flipped(whole, place))
            with self.subTest(flipped=place):
                code, _, err = self.thrice("explain", "bad.thrice")
                self.assertIn(code, (CORRUPT, UNSUPPORTED) if place in range(8, 12) else (CORRUPT,), err)
                self.assertIn("bad.thrice", err)
        for cut in (0, 1, 7, 8, 15, 16, 100, len(whole) // 2, len(whole) - 1):
            (self.here / "bad.thrice").write_bytes(whole[:cut])
            with self.subTest(cut=cut):
                self.refused(CORRUPT, ["bad.thrice"], "run", "bad.thrice", "--device", "null:0")
        (self.here / "bad.thrice").write_bytes(whole + b"tail")
        self.refused(CORRUPT, ["bad.thrice"], "run", "bad.thrice", "--device", "null:0")
        self.refused(CORRUPT, ["model.onnx"], "run", self.model, "--device", "null:0")
        self.refused(NOT_FOUND, ["none.thrice"], "run", "none.thrice", "--device", "null:0")

    def test_disk_full_while_saving(self):
        # A limit on file size is what a full disk is to write(); it needs no root. The folder of caches is warm by now.
        def small_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

        output = self.here / "kept.thrice"
        shutil.copy(self.null_release, output)
        before = output.read_bytes()
        matmul_model(self.here / "larger.onnx", width=4096)
        self.refused(IO, ["kept.thrice"], "optimize", "larger.onnx", "--device", "null:0", "--output", output,
                     preexec_fn=small_disk, restore_signals=False)
        self.assertEqual(output.read_bytes(), before, "the earlier release is damaged")
        self.assertEqual(sorted(p.name for p in self.here.iterdir()), ["kept.thrice", "larger.onnx"], "a part of a file was left")
        self.refused(NOT_FOUND, ["absent/out.thrice"], "optimize", self.model, "--device", "null:0", "--output", "absent/out.thrice")
        self.refused(IO, ["/dev/full"], "optimize", self.model, "--device", "null:0", "--output", "/dev/full/out.thrice")


class OnADevice(CommandLine):
    def test_a_race_checker(self):
        """One that is absent is said before any work; one that is there is in the report."""
        self.need_device()
        self.environment = self.environment | {"THRICE_RACE_CHECKER": str(self.here / "absent")}
        self.refused(NOT_FOUND, ["THRICE_RACE_CHECKER", "absent"], *self.optimize(self.model, "--no-tune", "--check-races"))
        del self.environment["THRICE_RACE_CHECKER"]
        code, out, err = self.thrice(*self.optimize(self.model, "--no-tune", "--check-races"))
        if code == NOT_FOUND:
            self.assertIn("apt-get install oclgrind", err)
            self.skipTest("oclgrind is not installed")
        self.assertEqual(code, OK, err)
        report = json.loads(out)
        self.assertEqual(report["races"], {"tool": "oclgrind", "clean": 1, "refused": 0, "not_checked": 0})
        self.assertTrue(any("race checker oclgrind: 1 kernels" in note for note in report["notes"]), report["notes"])

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if cls.device is None:
            return
        done = subprocess.run(
            [EXECUTABLE, "optimize", cls.shared / "model.onnx", "--device", cls.device, "--no-tune", "--dims", "n=4", "--output",
             cls.shared / "real.thrice"], env=cls.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def setUp(self):
        super().setUp()
        self.need_device()
        self.release = self.shared / "real.thrice"

    def save(self, name, array):
        numpy.save(self.here / name, array)
        return name

    def run_refused(self, code, words, *inputs):
        flags = [part for text in inputs for part in ("--input", text)]
        self.refused(code, words, "run", self.release, "--device", self.device, *flags, "--output", "results")
        self.assertFalse((self.here / "results").exists(), "results of a refused run")

    def test_wrong_inputs(self):
        good = numpy.zeros((4, 16), numpy.float32)
        self.save("good.npy", good)
        self.run_refused(USAGE, ["'y'", "x"], "y=good.npy")
        self.run_refused(USAGE, ["1 input"], "good.npy", "good.npy")
        self.run_refused(USAGE, ["'x'", "16", "17"], "x=" + self.save("wide.npy", numpy.zeros((4, 17), numpy.float32)))
        self.run_refused(USAGE, ["'x'", "[16]"], "x=" + self.save("flat.npy", numpy.zeros(16, numpy.float32)))
        self.run_refused(USAGE, ["'x'", "f32", "f64"], "x=" + self.save("double.npy", good.astype(numpy.float64)))
        self.run_refused(USAGE, ["'x'", "f32", "i64"], "x=" + self.save("ints.npy", good.astype(numpy.int64)))
        self.run_refused(NOT_FOUND, ["none.npy"], "x=none.npy")

    def test_broken_npy(self):
        self.save("good.npy", numpy.zeros((4, 16), numpy.float32))
        whole = (self.here / "good.npy").read_bytes()
        header = whole[:128]
        cases = {"empty": b"", "cut header": whole[:40], "cut data": whole[:-7], "noise": random.Random(3).randbytes(500),
                 "objects": header.replace(b"'<f4'", b"'|O8'") + whole[128:], "no shape": header.replace(b"shape", b"shope") + whole[128:],
                 "huge": header.replace(b"(4, 16), }       ", b"(4, 99999999999)}") + whole[128:],
                 "negative": header.replace(b"(4, 16)", b"(4,-16)") + whole[128:],
                 "header length": whole[:8] + b"\xff\xff" + whole[10:], "version": whole[:6] + b"\x09" + whole[7:]}
        for name, data in cases.items():
            self.assertNotEqual(data, whole, name)
            (self.here / "bad.npy").write_bytes(data)
            with self.subTest(name):
                got, _, err = self.thrice("run", self.release, "--device", self.device, "--input", "x=bad.npy")
                self.assertIn(got, (USAGE, UNSUPPORTED, CORRUPT), err)
                self.assertIn("bad.npy", err)

    def test_nan_inputs_give_nan_where_they_should(self):
        x = numpy.ones((4, 16), numpy.float32)
        x[1, 3], x[2, 5] = numpy.nan, numpy.inf
        got, _, err = self.thrice("run", self.release, "--device", self.device, "--input", "x=" + self.save("nan.npy", x),
                                  "--output", "results", "--check")
        self.assertEqual(got, OK, err)
        z = numpy.load(self.here / "results/out_0.npy")
        self.assertTrue(numpy.isnan(z[1]).all())
        self.assertFalse(numpy.isnan(z[[0, 3]]).any())
        self.assertTrue(numpy.isin(z[2], (0, numpy.inf)).all())

    def test_text_in_and_out(self):
        infos = [helper.make_tensor_value_info(name, TensorProto.STRING, ["n"]) for name in "abz"]
        graph = helper.make_graph([helper.make_node("StringConcat", ["a", "b"], ["z"])], "text", infos[:2], infos[2:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        (self.here / "text.onnx").write_bytes(model.SerializeToString())
        self.refused(UNSUPPORTED, ["StringConcat", "--allow-slow"], *self.optimize("text.onnx"))
        code, _, err = self.thrice(*self.optimize("text.onnx", "--allow-slow"))
        self.assertEqual(code, OK, err)
        a, b = numpy.array(["", "caf\u00e9", "\U0001f642 "]), numpy.array(["x", "\u6f22\u5b57", "y"])
        code, _, err = self.thrice("run", "out.thrice", "--device", self.device, "--input", "a=" + self.save("a.npy", a),
                                   "--input", "b=" + self.save("b.npy", b), "--output", "results", "--check")
        self.assertEqual(code, OK, err)
        self.assertEqual(numpy.load(self.here / "results/out_0.npy").tolist(), [x + y for x, y in zip(a, b)])
        self.refused(USAGE, ["'a'"], "run", "out.thrice", "--device", self.device, "--input",
                     "a=" + self.save("numbers.npy", numpy.zeros(3, numpy.float32)))
        self.refused(USAGE, ["bytes.npy", "S3"], "run", "out.thrice", "--device", self.device, "--input",
                     "a=" + self.save("bytes.npy", a[:1].astype("S3")))

    def test_a_result_without_a_number(self):
        # NaN where NaN is right, and no number beside it: neither the check of one run nor the release calls that wrong.
        write_model(self.here / "log.onnx", [helper.make_node("Sub", ["x", "y"], ["d"]), helper.make_node("Log", ["d"], ["z"])],
                    {"x": [1], "y": [1]}, {"z": [1]})
        code, _, err = self.thrice("optimize", "log.onnx", "--device", self.device, "--no-tune", "--output", "out.thrice")
        self.assertEqual(code, OK, err)
        one, two = self.save("one.npy", numpy.ones(1, numpy.float32)), self.save("two.npy", numpy.full(1, 2, numpy.float32))
        for x, y, word in ((two, one, "right"), (one, two, "NaN and infinities agree"), (one, one, "NaN and infinities agree")):
            code, out, err = self.thrice("run", "out.thrice", "--device", self.device, "--input", f"x={x}", "--input", f"y={y}",
                                         "--check", "--bisect")
            self.assertEqual(code, OK, out + err)
            self.assertIn(word, out)

    def test_tensor_beyond_32_bit_indices(self):
        vast = [1 << 20, 1 << 20]
        write_model(self.here / "vast.onnx", [helper.make_node("Relu", ["x"], ["z"], name="far")], {"x": vast}, {"z": vast})
        self.refused(UNSUPPORTED, ["Relu", "2^31", "split"], "optimize", "vast.onnx", "--device", self.device, "--output", "out.thrice",
                     "--store", "store.sqlite")
        self.assertFalse((self.here / "out.thrice").exists())

    def test_kernel_that_does_not_build(self):
        # PoCL without a place for its files builds nothing.
        (self.here / "file").touch()
        environment = self.environment | {"POCL_CACHE_DIR": str(self.here / "file"), "THRICE_CACHE": str(self.here / "fresh")}
        done = subprocess.run([EXECUTABLE, *self.optimize(self.model, "--no-tune")], env=environment, capture_output=True, text=True,
                              check=False, cwd=self.here, timeout=60)
        self.assertEqual(done.returncode, COMPILE, done.stderr)
        self.assertIn("[CompileFailed]", done.stderr)

    def test_too_little_memory_to_tune(self):
        (self.here / "s.yaml").write_text("agent_config: {hardware_constraints: {min_free_memory: 900TB}}\n")
        code, out, err = self.thrice(*self.optimize(self.model, "--budget", "20s", "--config", "s.yaml"))
        self.assertEqual(code, OK, err)
        self.assertRegex(" ".join(json.loads(out)["notes"]), r"\d+ trials were refused for memory: host: .* GB free is below")
        self.assertEqual(self.trials_in_store(), 1, "the default and nothing else")
        self.assertTrue((self.here / "out.thrice").exists())

    def test_damaged_store(self):
        (self.here / "store.sqlite").write_bytes(random.Random(5).randbytes(9000))
        code, out, err = self.thrice(*self.optimize(self.model, "--trials", "1"))
        self.assertEqual(code, OK, err)
        self.assertIn("store", " ".join(json.loads(out)["notes"]))
        self.assertTrue(list(self.here.glob("store.sqlite.damaged*")), "the damaged store was thrown away")
        self.assertGreater(self.trials_in_store(), 0)

    def trials_in_store(self):
        if not (self.here / "store.sqlite").exists():
            return 0
        try:
            with sqlite3.connect(f"file:{self.here}/store.sqlite?mode=ro", uri=True) as db:
                return db.execute("select count(*) from trial").fetchone()[0]
        except sqlite3.OperationalError:
            return 0

    def wait_for_trials(self, process, count):
        deadline = time.monotonic() + 50
        while self.trials_in_store() < count:
            self.assertIsNone(process.poll(), "ended before there was anything to interrupt")
            self.assertLess(time.monotonic(), deadline, "no trials in the store after 50 s")
            time.sleep(0.05)

    def test_killed_midway_goes_on(self):
        process = self.start(*self.optimize(self.model, "--budget", "60s"))
        self.wait_for_trials(process, 4)
        process.kill()
        process.communicate()
        kept = self.trials_in_store()
        self.assertGreaterEqual(kept, 4)
        code, _, err = self.thrice("explain", "out.thrice")  # released before the first trial
        self.assertEqual(code, OK, err)
        (self.here / "out.thrice").unlink()
        code, out, err = self.thrice(*self.optimize(self.model, "--trials", "0"))
        self.assertEqual(code, OK, err)
        self.assertEqual(json.loads(out)["trials"], 0, "trials were made again")
        self.assertEqual(self.trials_in_store(), kept)
        self.assertTrue((self.here / "out.thrice").exists())

    def test_interrupt_keeps_the_best_so_far(self):
        process = self.start(*self.optimize(self.model, "--budget", "60s"))
        self.wait_for_trials(process, 3)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, OK, err)
        report = json.loads(out)
        self.assertTrue(report["cancelled"] and report["verified"])
        self.assertTrue((self.here / "out.thrice").exists())

    def test_two_processes_one_store(self):
        first = self.start(*self.optimize(self.model, "--trials", "6"))
        second = self.start(*self.optimize(self.model, "--trials", "6", "--seed", "9"))
        for process in (first, second):
            out, err = process.communicate(timeout=100)
            self.assertEqual(process.returncode, OK, err)
            self.assertTrue(json.loads(out)["verified"])
        self.assertGreaterEqual(self.trials_in_store(), 6)
        code, _, err = self.thrice("explain", "out.thrice")
        self.assertEqual(code, OK, err)


if __name__ == "__main__":
    unittest.main()
