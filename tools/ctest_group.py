#!/usr/bin/env python3
"""Runs the CTest entries of one label and counts the GoogleTest cases inside them.

    tools/ctest_group.py BUILD_DIR LABEL [CTEST_ARGUMENT...]

The last line is `N passed, N failed[, N skipped]`. An entry that fails without naming a failed case (a crash, a time-out) counts as
one failure. A label without entries prints "skipped: ..." and passes, unless tests/LABEL holds test files.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

WHOLE_OUTPUT = "50000000"


def count(text: str, pattern: str) -> int:
    return sum(int(number) for number in re.findall(pattern, text, re.MULTILINE))


def main() -> int:
    build, label, *extra = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        command = ["ctest", "--test-dir", build, "-L", f"^{label}$", "--output-on-failure", "--no-tests=ignore"]
        command += ["--output-junit", str(report), "--test-output-size-passed", WHOLE_OUTPUT]
        command += ["--test-output-size-failed", WHOLE_OUTPUT, *extra]
        code = subprocess.run(command, check=False).returncode
        cases = ElementTree.parse(report).getroot().findall("testcase") if report.is_file() else []

    passed = failed = skipped = 0
    for case in cases:
        output = case.findtext("system-out") or ""
        entry_passed = count(output, r"^\[  PASSED  \] (\d+) tests?\.$")
        entry_failed = count(output, r"^\[  FAILED  \] (\d+) tests?, listed below:$")
        entry_skipped = count(output, r"^\[  SKIPPED \] (\d+) tests?, listed below:$")
        if case.get("status") == "run":
            passed += entry_passed if entry_passed or entry_skipped else 1
        else:
            passed += entry_passed
            failed += entry_failed or 1
            print(f"failed entry: {case.get('name')}")
        skipped += entry_skipped
        for reason in sorted(set(re.findall(r"^.*: Skipped\n(.+)$", output, re.MULTILINE))):
            print(f"skipped: {case.get('name')}: {reason}")

    if not cases:
        root = pathlib.Path(__file__).resolve().parent.parent
        if any((root / "tests" / label).rglob("*.cc")):
            print(f"tests/{label} holds tests, and CTest knows none: was GoogleTest found when {build} was configured?")
            code, failed = 1, 1
        else:
            print(f"skipped: tests/{label} holds no test yet")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if code or failed else 0


if __name__ == "__main__":
    sys.exit(main())
