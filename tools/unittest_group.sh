#!/usr/bin/env bash
# Runs the Python unit tests of a folder; the last line is `N passed, N failed`.
set -u
cd "$(dirname "$0")/.."
exec .venv/bin/python - "$1" <<'PYTHON'
import sys, unittest
suite = unittest.defaultTestLoader.discover(sys.argv[1], top_level_dir=sys.argv[1])
result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
failed = len(result.failures) + len(result.errors)
for test, reason in result.skipped:
    print(f"skipped: {test.id()}: {reason}")
print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed")
sys.exit(failed > 0 or result.testsRun == 0)
PYTHON
