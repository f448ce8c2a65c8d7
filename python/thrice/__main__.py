"""The command `thrice` of an installed wheel: becomes the executable inside it."""
from __future__ import annotations

import os
import pathlib
import sys

from ._errors import ThriceError
from ._library import find_executable


def main() -> None:
    try:
        executable = find_executable()
    except ThriceError as e:
        sys.exit(f"thrice: {e}")
    if pathlib.Path(executable).resolve() == pathlib.Path(sys.argv[0]).resolve():
        sys.exit("thrice: this package holds no executable; install a wheel, or set THRICE_EXECUTABLE")
    os.execv(executable, ["thrice", *sys.argv[1:]])


if __name__ == "__main__":
    main()
