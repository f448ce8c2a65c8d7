"""Would catch a layers check that lets an upward edge, a hidden include or a neighbouring room through."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402

FLOORS = """
floors = [["include/thrice", "src/base"], ["src/ir", "src/target"], ["src/family", "src/plan"]]
everyone_may_include = ["include/thrice"]
rooms = ["src/family"]
"""


class CheckLayers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("docs/floors.toml", FLOORS)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def violations(self):
        return check_layers.check_tree(self.root)[1]

    def refused(self, words):
        found = self.violations()
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_downward_and_public_are_fine(self):
        self.write("include/thrice/shape.h", "#include <thrice/dtype.h>\n#include <vector>\n")
        self.write("src/base/hash.h", "#include <thrice/status.h>\n")
        self.write("src/ir/graph.h", '#include "base/hash.h"\n#include <thrice/shape.h>\n')
        self.write("src/plan/plan.cc", '#include "plan/plan.h"\n#include "ir/graph.h"\n#include <sqlite3.h>\n')
        self.write("tests/unit/plan/plan.cc", '#include "plan/plan.h"\n#include "support/thing.h"\n')
        self.assertEqual(self.violations(), [])

    def test_upward(self):
        self.write("src/ir/graph.cc", '#include "plan/plan.h"\n')
        self.refused("src/ir/graph.cc:1: src/ir (floor 1) includes plan/plan.h: src/plan (floor 2) is above it")

    def test_angle_brackets_do_not_hide_an_edge(self):
        self.write("src/plan/plan.h", "\n")
        self.write("src/ir/graph.cc", "#include <plan/plan.h>\n")
        self.refused("src/plan (floor 2) is above it")

    def test_same_floor(self):
        self.write("src/ir/graph.cc", '\n  #  include "target/target.h"  // why\n')
        self.refused("src/ir/graph.cc:2: src/ir (floor 1) includes target/target.h: src/target (floor 1) is on the same floor")

    def test_public_includes_the_inside(self):
        self.write("include/thrice/session.h", '#include "base/hash.h"\n')
        self.refused("include/thrice (floor 0) includes base/hash.h")

    def test_inside_a_function(self):
        self.write("src/ir/graph.cc", 'namespace ir {\nint f() {\n#include "ir/table.h"\n  return 0;\n}\n}\n')
        self.refused("src/ir/graph.cc:3: include of ir/table.h inside braces")

    def test_inside_a_function_of_a_test(self):
        self.write("tests/unit/ir/graph.cc", 'TEST(A, B) {\n#include <vector>\n}\n')
        self.refused("tests/unit/ir/graph.cc:2: include of vector inside braces")

    def test_braces_that_do_not_count(self):
        self.write(
            "src/ir/graph.cc",
            '// {\n/* {\n{ */\nconst char* a = "{ \\" {"; char b = \'{\'; int c = 1\'000; char d = \'"\';\n'
            'const char* e = R"T({ " { )T";\n#if X\nvoid f() {\n#else\nvoid g() {\n#endif\n}\nextern "C" {\n#include <third.h>\n}\n'
            '#include "ir/graph.h"\n',
        )
        self.assertEqual(self.violations(), [])

    def test_commented_include_is_not_an_include(self):
        self.write("src/ir/graph.cc", '// #include "plan/plan.h"\n/*\n#include "plan/plan.h"\n*/\n')
        self.assertEqual(self.violations(), [])

    def test_rooms(self):
        self.write("src/family/map/emit.cc", '#include "family/map/emit.h"\n#include "family/family.h"\n')
        self.write("src/family/registry.cc", '#include "family/map/emit.h"\n')
        self.assertEqual(self.violations(), [])
        self.write("src/family/row/emit.cc", '#include "family/map/emit.h"\n')
        self.refused("room row includes family/map/emit.h of the neighbouring room map")

    def test_shared_header_includes_a_room(self):
        self.write("src/family/family.h", '#include "family/map/emit.h"\n')
        self.refused("only a .cc file")

    def test_unknown_quoted_include(self):
        self.write("src/ir/graph.cc", '#include "graph.h"\n')
        self.refused('"graph.h" names no folder of ours')

    def test_folder_without_floor(self):
        self.write("src/helpers/x.cc", "\n")
        self.refused("src/helpers: no floor")

    def test_cmake_differs(self):
        self.write("cmake/floors.cmake", "set(THRICE_FLOOR_0 base)\nset(THRICE_FLOOR_1 ir)\n")
        self.refused("cmake/floors.cmake: floor 1")

    def test_this_repository(self):
        self.assertEqual(check_layers.check_tree(ROOT)[1], [])


if __name__ == "__main__":
    unittest.main()
