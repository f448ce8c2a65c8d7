"""Catches: an optimiser, a compiler or a C++ runtime linked into libthrice.so; a symbol that leaks out of it or of the
executable; a symbol of a C library newer than 2.35."""
import re
import subprocess
import unittest

import small_model

NEWEST_GLIBC = (2, 35)
ALLOWED_NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}
# One name that each would bring along, hidden or not.
FORBIDDEN = {"protobuf": r"google8protobuf", "YAML": r"4YAML", "SQLite": r"\bsqlite3_", "front end": r"8frontend",
             "planner": r"6thrice4plan", "tuner": r"6thrice4tune", "generator": r"6thrice7codegen", "store": r"6thrice5store",
             "jit": r"6thrice3jit", "flow": r"6thrice4flow"}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(path) -> set:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", str(path))))


def newest_glibc(path) -> tuple:
    versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", output("readelf", "-V", "--wide", str(path)))
    return max((int(major), int(minor)) for major, minor in versions)


class LibraryLinksTest(unittest.TestCase):
    def test_only_the_c_library_is_needed(self):
        self.assertLessEqual(needed(small_model.LIBRARY), ALLOWED_NEEDED)

    def test_only_the_interface_is_visible(self):
        symbols = [line.split()[-1] for line in output("nm", "-D", "--defined-only", str(small_model.LIBRARY)).splitlines()]
        names = {symbol.split("@")[0] for symbol in symbols}
        declared = set(re.findall(r"\b(thrice_\w+)\(", (small_model.ROOT / "include/thrice/thrice.h").read_text()))
        self.assertEqual(names - {"THRICE_1"}, declared)

    def test_no_optimiser_inside(self):
        names = output("nm", str(small_model.LIBRARY))
        self.assertIn("thrice", names)
        for what, pattern in FORBIDDEN.items():
            self.assertIsNone(re.search(pattern, names), f"libthrice.so holds parts of: {what}")

    def test_glibc_2_35_is_enough(self):
        paths = [small_model.LIBRARY]
        # The executable of an ordinary build uses shared C++ libraries; the portable one must not.
        if "libstdc++.so.6" not in needed(small_model.EXECUTABLE):
            paths.append(small_model.EXECUTABLE)
        for path in paths:
            with self.subTest(path.name):
                self.assertLessEqual(newest_glibc(path), NEWEST_GLIBC)
                self.assertNotIn("GLIBCXX", output("readelf", "-V", "--wide", str(path)))
                self.assertLessEqual(needed(path), ALLOWED_NEEDED)


if __name__ == "__main__":
    unittest.main()
