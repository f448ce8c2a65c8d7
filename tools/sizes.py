#!/usr/bin/env python3
"""Counts lines per folder and lists the files above 400 and 800 lines.

    tools/sizes.py [ROOT] [--strict]

A file above 800 lines needs a written reason near its top: a line that holds the words "Long file:".
--strict exits 1 when one lacks it. Files counted: C++, kernel texts, Python, shell, CMake.
"""
import argparse
import collections
import pathlib
import statistics
import sys

SUFFIXES = {".h", ".cc", ".cl", ".cuh", ".cu", ".py", ".sh", ".cmake", ".proto"}
FOLDERS = ("include", "kernels", "src", "tests", "tools", "python", "bench", "examples", "cmake")
ASK, REASON = 400, 800
REASON_WORDS = "Long file:"
REASON_WITHIN_LINES = 20


def folder_of(path: pathlib.PurePath) -> str:
    """The folder a file is counted under: two levels below src and tests, one elsewhere."""
    parts = path.parts[:-1]
    return "/".join(parts[:2]) if parts[0] in ("src", "tests", "kernels") else parts[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()

    lengths: dict[str, list[int]] = collections.defaultdict(list)
    long_files: list[tuple[int, str, bool]] = []
    for top in FOLDERS:
        for path in sorted((arguments.root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            lines = path.read_text(errors="replace").splitlines()
            relative = path.relative_to(arguments.root)
            lengths[folder_of(relative)].append(len(lines))
            if len(lines) > ASK:
                has_reason = any(REASON_WORDS in line for line in lines[:REASON_WITHIN_LINES])
                long_files.append((len(lines), str(relative), has_reason))

    print(f"{'folder':<24}{'files':>7}{'lines':>9}{'median':>8}{'largest':>9}")
    for folder in sorted(lengths):
        counts = lengths[folder]
        print(f"{folder:<24}{len(counts):>7}{sum(counts):>9}{statistics.median(counts):>8.0f}{max(counts):>9}")
    everything = [count for counts in lengths.values() for count in counts]
    print(f"{'all':<24}{len(everything):>7}{sum(everything):>9}")

    without_reason = 0
    for count, name, has_reason in sorted(long_files, reverse=True):
        note = ""
        if count > REASON:
            note = "reason given" if has_reason else f'no reason given ("{REASON_WORDS} ..." at the top)'
            without_reason += not has_reason
        print(f"above {REASON if count > REASON else ASK}: {name} {count} {note}".rstrip())
    return 1 if arguments.strict and without_reason else 0


if __name__ == "__main__":
    sys.exit(main())
