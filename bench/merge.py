#!/usr/bin/env python3
"""Joins results files of several runs into one: time on a card is short. A later file's case replaces an earlier one's.

    bench/merge.py --output bench/results/h200/skeleton.json FILE...

The output may be among the files. Exit 1, and nothing is written, when a file breaks the schema (bench/results_file.py).
"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys

import results_file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    contents = [json.loads(path.read_text()) for path in arguments.files]
    wrong = [f"{path}: {one}" for path, data in zip(arguments.files, contents) for one in results_file.problems(data)]
    if wrong:
        print("merge: " + "\n       ".join(wrong), file=sys.stderr)
        return 1
    joined = results_file.join(contents)
    arguments.output.write_text(json.dumps(joined, indent=1) + "\n")
    print(f"{arguments.output}: {len(joined['cases'])} cases of {len(joined['runs'])} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
