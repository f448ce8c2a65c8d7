#!/usr/bin/env python3
"""Checks that includes only point down: docs/floors.toml names the floors.

    tools/check_layers.py [ROOT]

Refused, each with file, line and reason:
  an include of a folder on the same floor or above; a room of src/family that includes a neighbouring room;
  an include written inside braces (a function body, a namespace; extern "C" is fine);
  a quoted include that no folder holds; a folder of src/ without a floor; CMake's floors that differ from docs/floors.toml.
Exit 0 when clean, 1 with violations, 2 when floors.toml cannot be read.
"""
import pathlib
import re
import sys
import tomllib

SOURCE_SUFFIXES = {".h", ".cc", ".cpp", ".cu", ".cuh", ".cl"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")
# Made at build time, so no file of that name stands in the tree.
GENERATED = (".pb.h",)


class Rules:
    """The floors and exceptions of docs/floors.toml."""

    def __init__(self, root: pathlib.Path):
        table = tomllib.loads((root / "docs/floors.toml").read_text())
        self.floors: list[list[str]] = table["floors"]
        self.floor_of = {folder: floor for floor, folders in enumerate(self.floors) for folder in folders}
        self.public: list[str] = table.get("everyone_may_include", [])
        self.rooms: list[str] = table.get("rooms", [])

    def folder(self, path: str) -> str | None:
        """The folder with a floor that holds `path` (relative to the root), or None."""
        return next((name for name in self.floor_of if path.startswith(name + "/")), None)

    def room(self, path: str) -> tuple[str, str] | None:
        """(folder of rooms, room) that holds `path`, or None."""
        for folder in self.rooms:
            if path.startswith(folder + "/"):
                rest = path[len(folder) + 1 :]
                if "/" in rest:
                    return folder, rest.split("/")[0]
        return None


def blank_out(text: str) -> str:
    """`text` with comments, string bodies and character literals blanked, line breaks kept; include lines untouched."""
    token = re.compile(
        r'(?P<include>^[ \t]*#[ \t]*include[^\n]*)'
        r'|(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)'
        r'|(?P<raw>R"(?P<tag>[^()\\ ]{0,16})\(.*?\)(?P=tag)")'
        r'|(?P<string>"(?:\\.|[^"\\\n])*")'
        r"|(?P<digits>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))"
        r"|(?P<char>'(?:\\.|[^'\\\n])+')",
        re.DOTALL | re.MULTILINE,
    )

    def replace(match: re.Match) -> str:
        if match.lastgroup == "include" or match.group("include"):
            return match.group(0)
        blank = re.sub(r"[^\n]", " ", match.group(0))
        if match.group("string") == '"C"' or match.group("string") == '"C++"':
            return match.group(0)
        return blank

    return token.sub(replace, text)


def includes_of(text: str):
    """Yields (line number, quote, target, depth): depth counts open braces other than those of extern "C"."""
    depth_stack: list[bool] = []  # one entry an open brace: True when it counts
    saved: list[list[bool]] = []
    since_brace = ""
    for number, line in enumerate(blank_out(text).split("\n"), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1), match.group(2), sum(depth_stack)
            continue
        if match := CONDITION.match(line):
            word = match.group(1)
            if word.startswith("if"):
                saved.append(list(depth_stack))
            elif word == "endif":
                if saved:
                    saved.pop()
            elif saved:
                depth_stack = list(saved[-1])
            continue
        if line.lstrip().startswith("#"):
            continue
        for character in line:
            if character == "{":
                depth_stack.append(not re.search(r'\bextern\s*"C(\+\+)?"\s*$', since_brace))
                since_brace = ""
            elif character == "}":
                if depth_stack:
                    depth_stack.pop()
                since_brace = ""
            elif character == ";":
                since_brace = ""
            else:
                since_brace += character
        since_brace += " "


def resolve(root: pathlib.Path, rules: Rules, quote: str, target: str) -> str | None:
    """The path of our own file that an include names, relative to the root; None for a third-party header."""
    for base in ("src", "include", "."):
        path = f"{base}/{target}" if base != "." else target
        if rules.folder(path) and (quote == '"' or (root / path).is_file()):
            return path
    return None


def check_file(root: pathlib.Path, rules: Rules, path: str, text: str) -> list[str]:
    """Every violation of one file, as printable lines."""
    found = []
    own = rules.folder(path)
    in_tests = own is None
    for number, quote, target, depth in includes_of(text):
        def refuse(reason: str):
            found.append(f"{path}:{number}: {reason}")

        if depth > 0:
            refuse(f"include of {target} inside braces; move it to the head of the file")
        resolved = resolve(root, rules, quote, target)
        if resolved is None:
            known = in_tests or target.endswith(GENERATED) or quote == "<"
            if not known:
                refuse(f'"{target}" names no folder of ours; write the path from src/, or <...> for a third-party header')
            continue
        if in_tests:
            continue
        other = rules.folder(resolved)
        if other != own:
            if other not in rules.public and rules.floor_of[other] >= rules.floor_of[own]:
                relation = "on the same floor as" if rules.floor_of[other] == rules.floor_of[own] else "above"
                refuse(
                    f"{own} (floor {rules.floor_of[own]}) includes {target}: {other} (floor {rules.floor_of[other]}) is {relation} it; "
                    "give the lower folder an interface that the flow fills in"
                )
            elif own in rules.public:
                refuse(f"{own} is public and includes {target}: it may include nothing of the inside")
            continue
        mine, theirs = rules.room(path), rules.room(resolved)
        if theirs and mine and mine != theirs:
            refuse(f"room {mine[1]} includes {target} of the neighbouring room {theirs[1]}; move what both need into {mine[0]}/")
        elif theirs and not mine and path.endswith(".h"):
            refuse(f"{path} is shared by all rooms and includes the room {theirs[1]}; only a .cc file of {theirs[0]} may")
    return found


def check_cmake(root: pathlib.Path, rules: Rules) -> list[str]:
    """CMake links libraries by the same floors; a difference would let a link edge go up."""
    path = root / "cmake/floors.cmake"
    if not path.is_file():
        return []
    found = []
    for number, names in re.findall(r"set\(THRICE_FLOOR_(\d+)\s+([^)]*)\)", path.read_text()):
        linked = sorted(names.split())
        written = sorted(name[4:] for name in rules.floors[int(number)] if name.startswith("src/"))
        if linked != written:
            found.append(f"cmake/floors.cmake: floor {number} is {linked}, docs/floors.toml says {written}")
    return found


def check_tree(root: pathlib.Path) -> tuple[int, list[str]]:
    """(files read, violations) of the tree under `root`."""
    rules = Rules(root)
    violations = check_cmake(root, rules)
    count = 0
    if (root / "src").is_dir():
        for folder in sorted((root / "src").iterdir()):
            if folder.is_dir() and f"src/{folder.name}" not in rules.floor_of and any(folder.rglob("*")):
                violations.append(f"src/{folder.name}: no floor; add it to docs/floors.toml and cmake/floors.cmake")
    for top in ("include", "src", "tests", "bench", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix in SOURCE_SUFFIXES and file.is_file():
                count += 1
                path = file.relative_to(root).as_posix()
                violations += check_file(root, rules, path, file.read_text(errors="replace"))
    return count, violations


def main() -> int:
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    try:
        count, violations = check_tree(root)
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        print(f"check_layers: cannot read the floors of {root}: {error}", file=sys.stderr)
        return 2
    for line in violations:
        print(line)
    print(f"check_layers: {count} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
