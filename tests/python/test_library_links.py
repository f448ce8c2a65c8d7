"""Catches: an optimiser, a compiler or a C++ runtime linked into libthrice.so; a symbol that leaks out of it or of the
executable; a symbol of a C library newer than 2.35."""
import re
import subprocess
import sys
import unittest

import small_model

sys.path.insert(0, str(small_model.ROOT / "tools"))
import check_portable  # noqa: E402

# One name that each would bring along, hidden or not.
FORBIDDEN = {"protobuf": r"google8protobuf", "YAML": r"4YAML", "SQLite": r"\bsqlite3_", "front end": r"8frontend",
             "planner": r"6thrice4plan", "tuner": r"6thrice4tune", "generator": r"6thrice7codegen", "store": r"6thrice5store",
             "jit": r"6thrice3jit", "flow": r"6thrice4flow"}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class LibraryLinksTest(unittest.TestCase):
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

    def test_library_and_executable_travel(self):
        for path in (small_model.LIBRARY, small_model.EXECUTABLE):
            self.assertEqual(check_portable.objections(path), [], path)

    def test_what_does_not_travel_is_refused(self):
        self.assertTrue(any("libthrice.so.1" in reason for reason in check_portable.objections(small_model.BUILD / "example_02_swap")))


if __name__ == "__main__":
    unittest.main()
