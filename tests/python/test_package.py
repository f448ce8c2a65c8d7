"""Catches: a wheel or archive that lacks a file, cannot be installed without a network, or does not work where it lands."""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile

import numpy as np

import small_model

TOOLS = small_model.ROOT / "tools"
USE = """
import numpy as np, sys, thrice
(y, same, extents) = thrice.load(sys.argv[1], device="opencl:0").run(np.ones((3, 8), "f4"), np.ones(8, "f4"))
print(thrice.__file__, y.shape, thrice.optimize(sys.argv[2], sys.argv[3], progress=False, device="null:0", no_tune=True,
                                                dims={"length": 2}, cache=sys.argv[4])["model"])
"""


def run(*command: object, **keywords) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **keywords)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class PackageTest(unittest.TestCase):
    def test_wheel_in_a_fresh_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            wheel = run(sys.executable, TOOLS / "build_wheel.py", small_model.BUILD, "--output", root).strip()
            self.assertRegex(wheel, r"thrice-[\d.]+-py3-none-manylinux_2_\d\d_x86_64\.whl$")
            again = run(sys.executable, TOOLS / "build_wheel.py", small_model.BUILD, "--output", root / "again").strip()
            self.assertEqual(pathlib.Path(wheel).read_bytes(), pathlib.Path(again).read_bytes())
            venv.create(root / "venv", with_pip=True, symlinks=True)
            python = root / "venv/bin/python"
            # NumPy, the only thing it needs, comes from the environment of the tests: the check needs no network.
            environment = {k: v for k, v in os.environ.items() if not k.startswith("THRICE_")}
            environment["PYTHONPATH"] = str(pathlib.Path(np.__file__).parents[1])
            run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
            model = small_model.folder() / "wheel.onnx"
            small_model.write_model(model, 1.0)
            text = run(python, "-c", USE, small_model.release(), model, root / "w.thrice", root / "cache", cwd=root,
                       env=environment)
            self.assertIn(str(root / "venv"), text)
            self.assertIn("(3, 4)", text)
            listed = run(root / "venv/bin/thrice", "devices", env=environment)  # the command that the wheel installs
            self.assertIn("opencl:0", listed)

    def test_archive(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            path = run(TOOLS / "package.sh", "--build", small_model.BUILD, "--output", root).splitlines()[-1]
            with tarfile.open(path) as archive:
                archive.extractall(root)
            (top,) = [p for p in root.iterdir() if p.is_dir()]
            for name in ("LICENSE", "THIRD_PARTY_NOTICES.md", "include/thrice/thrice.h", "examples/01_run.c"):
                self.assertTrue((top / name).is_file(), name)
            self.assertEqual(len(list((top / "python").glob("*.whl"))), 1)
            # As a stranger would: a C program against nothing but the archive, run with nothing but the archive.
            run("cc", top / "examples/01_run.c", "-I", top / "include", "-L", top / "lib", "-lthrice", "-o", root / "run")
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "LD_LIBRARY_PATH": str(top / "lib")}
            self.assertIn("output y f32 2x4 first 1", run(root / "run", small_model.release(), 2, env=environment))
            self.assertIn("opencl:0", run(top / "bin/thrice", "devices", env={"HOME": folder}))
            with zipfile.ZipFile(next((top / "python").glob("*.whl"))) as wheel:
                wheel.extractall(root / "site")
            environment["PYTHONPATH"] = os.pathsep.join([str(root / "site"), str(pathlib.Path(np.__file__).parents[1])])
            run(sys.executable, "-m", "unittest", "test_session.SessionTest.test_any_length_by_position_and_by_name",
                cwd=top / "tests/python", env=environment)
            run(sys.executable, "-m", "py_compile", *(top / "bench").glob("*.py"), *(top / "tools").glob("*.py"))


if __name__ == "__main__":
    unittest.main()
