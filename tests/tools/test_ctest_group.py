"""Would catch a test step that reports success while a test binary failed, crashed, or was never built."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/ctest_group.py"


class CTestGroup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = pathlib.Path(self.folder.name)
        self.entries = []

    def tearDown(self):
        self.folder.cleanup()

    def entry(self, name, label, script):
        (self.build / name).write_text("#!/bin/sh\n" + script)
        self.entries.append(
            f'add_test({name} "/bin/sh" "{self.build / name}")\nset_tests_properties({name} PROPERTIES LABELS "{label}")\n'
        )

    def run_group(self, label):
        (self.build / "CTestTestfile.cmake").write_text("".join(self.entries))
        done = subprocess.run([sys.executable, TOOL, self.build, label], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()

    def test_counts_cases_of_the_label_only(self):
        self.entry("a", "one", "echo '[  PASSED  ] 3 tests.'\n")
        self.entry("b", "one", "echo '[  PASSED  ] 1 test.'\n")
        self.entry("c", "other", "exit 1\n")
        code, lines = self.run_group("one")
        self.assertEqual((code, lines[-1]), (0, "4 passed, 0 failed"))

    def test_failed_cases(self):
        self.entry("a", "one", "echo '[  PASSED  ] 3 tests.'\necho '[  FAILED  ] 2 tests, listed below:'\nexit 1\n")
        code, lines = self.run_group("one")
        self.assertNotEqual(code, 0)
        self.assertEqual(lines[-1], "3 passed, 2 failed")

    def test_crash_counts_as_a_failure(self):
        self.entry("a", "one", "kill -SEGV $$\n")
        code, lines = self.run_group("one")
        self.assertNotEqual(code, 0)
        self.assertEqual(lines[-1], "0 passed, 1 failed")

    def test_skip_is_shown_with_its_reason(self):
        self.entry(
            "a", "one", "printf 'x.cc:3: Skipped\\nno card\\n\\n[  PASSED  ] 1 test.\\n[  SKIPPED ] 1 test, listed below:\\n'\n"
        )
        code, lines = self.run_group("one")
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("skipped: a: no card", lines)

    def test_folder_with_tests_but_no_entry_fails(self):
        repository = TOOL.parents[1]
        if not any((repository / "tests/unit").rglob("*.cc")):
            self.skipTest("tests/unit holds no test yet")
        code, lines = self.run_group("unit")
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
