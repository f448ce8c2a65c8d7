#!/usr/bin/env python3
"""Checks that programs and libraries run on any Linux with glibc 2.35 or newer.

    tools/check_portable.py FILE...

Refused: a symbol of a newer GLIBC; a dependency on a shared C++ runtime (GLIBCXX, CXXABI, GCC); a needed library beyond the C
library's own; a text relocation. Prints one line a file; exit 1 when one is refused. Needs readelf (binutils).
"""
from __future__ import annotations

import pathlib
import re
import subprocess
import sys

NEWEST_GLIBC = (2, 35)
ALLOWED_NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2"}


def readelf(*arguments: object) -> str:
    return subprocess.run(["readelf", "--wide", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def needed(path: object) -> set[str]:
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", path)))


def newest_glibc(*paths: object) -> tuple[int, int]:
    """The newest version among the symbols that the files take from the C library."""
    found = [version for path in paths for version in re.findall(r"\bGLIBC_(\d+)\.(\d+)", readelf("-V", path))]
    return max((int(major), int(minor)) for major, minor in found)


def objections(path: object) -> list[str]:
    reasons = []
    versions = readelf("-V", path)
    newest = newest_glibc(path)
    if newest > NEWEST_GLIBC:
        reasons.append("needs GLIBC_%d.%d" % newest)
    runtime = sorted(set(re.findall(r"\b(?:GLIBCXX|CXXABI|GCC)_[\d.]+", versions)))
    if runtime:
        reasons.append("needs a shared C++ runtime: " + ", ".join(runtime))
    more = sorted(needed(path) - ALLOWED_NEEDED)
    if more:
        reasons.append("needs " + ", ".join(more))
    if "TEXTREL" in readelf("-d", path):
        reasons.append("has text relocations")
    return reasons


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    refused = 0
    for name in sys.argv[1:]:
        reasons = objections(name)
        refused += bool(reasons)
        glibc = "%d.%d" % newest_glibc(name)
        print(f"{pathlib.Path(name).name}: {'REFUSED: ' + '; '.join(reasons) if reasons else f'portable, glibc {glibc} or newer'}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
