#!/usr/bin/env python3
"""Packs the Python package with libthrice.so and the executable into a wheel. Needs no network, no pip, no setuptools.

    tools/build_wheel.py BUILD_DIR [--output FOLDER]

Both files are stripped and must pass tools/check_portable.py; the platform tag names the glibc that they need. Equal contents
give equal bytes. Prints the wheel's path.
"""
import argparse
import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import check_portable

ROOT = pathlib.Path(__file__).resolve().parent.parent
METADATA = """Metadata-Version: 2.1
Name: thrice
Version: {version}
Summary: Verified, tuned releases of ONNX models: load, run, swap, optimise
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
"""


def stripped(path: pathlib.Path, folder: str) -> bytes:
    copy = pathlib.Path(folder) / path.name
    subprocess.run(["strip", "--strip-unneeded", "-o", copy, path], check=True)
    return copy.read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."))
    arguments = parser.parse_args()
    library, executable = arguments.build / "libthrice.so.1", arguments.build / "thrice"
    for path in (library, executable):
        reasons = check_portable.objections(path)
        if reasons:
            print(f"build_wheel: {path}: {'; '.join(reasons)}", file=sys.stderr)
            return 1

    version = re.search(r"project\(thrice VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    tag = "py3-none-manylinux_%d_%d_x86_64" % check_portable.newest_glibc(library, executable)
    info = f"thrice-{version}.dist-info"
    files = {f"thrice/{path.name}": path.read_bytes() for path in sorted((ROOT / "python/thrice").iterdir())
             if path.suffix in (".py", ".typed")}
    with tempfile.TemporaryDirectory() as folder:
        files["thrice/libthrice.so"] = stripped(library, folder)
        files["thrice/bin/thrice"] = stripped(executable, folder)
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
        files[f"{info}/{name}"] = (ROOT / name).read_bytes()
    files[f"{info}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: thrice\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    files[f"{info}/entry_points.txt"] = b"[console_scripts]\nthrice = thrice.__main__:main\n"
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    arguments.output.mkdir(parents=True, exist_ok=True)
    wheel = arguments.output / f"thrice-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # dated 1980, so that equal contents give equal bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith("bin/thrice") else 0o100644) << 16
            archive.writestr(entry, data)
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
