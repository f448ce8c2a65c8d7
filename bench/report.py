#!/usr/bin/env python3
"""Prints results files as Markdown tables, one a suite, with the geometric mean over every rival. Docs take their tables from here.

    bench/report.py FILE...
"""
from __future__ import annotations

import json
import pathlib
import statistics
import sys

import results_file


def ratio_line(cases: list, rival: str) -> str:
    ratios = {case["name"]: case["rivals"][rival] / case["thrice_us"] for case in cases if rival in case["rivals"] and "thrice_us" in case}
    if not ratios:
        return f"- over {rival}: not measured"
    least = min(ratios, key=ratios.get)
    missing = len(cases) - len(ratios)
    return (f"- over {rival}: geometric mean {statistics.geometric_mean(ratios.values()):.2f}x of {len(ratios)} cases, "
            f"least {ratios[least]:.2f}x ({least})" + (f"; {missing} without a figure" if missing else ""))


def suite_table(suite: str, cases: list) -> str:
    rivals = sorted({rival for case in cases for rival in case["rivals"]})
    lines = [f"### {suite}", "", "| case | shape | thrice us | error / limit | " + " | ".join(f"{r} us" for r in rivals) + " |",
             "|---" * (4 + len(rivals)) + "|"]
    for case in cases:
        time = case.get("thrice_us")
        error = f"{case['error']:.1e} / {case['error_limit']:.1e}" if "error" in case else ""
        row = [case["name"], case.get("shape", ""), f"{time:.1f}" if time else "", error]
        for rival in rivals:
            us = case["rivals"].get(rival)
            row.append("" if us is None else f"{us:.1f}" + (f" ({us / time:.2f}x)" if time else ""))
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, "", *(ratio_line(cases, rival) for rival in rivals)])


def report(data: dict) -> str:
    parts = []
    for suite in dict.fromkeys(case["suite"] for case in data["cases"]):
        parts.append(suite_table(suite, [case for case in data["cases"] if case["suite"] == suite]))
    for run in data["runs"]:
        environment = ", ".join(f"{key} {value}" for key, value in run["environment"].items())
        parts.append(f"Run {run['id']}, {run['date']}: `{run['command']}`; {environment}.")
    return "\n\n".join(parts)


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    for name in sys.argv[1:]:
        data = json.loads(pathlib.Path(name).read_text())
        wrong = results_file.problems(data)
        if wrong:
            print(f"report: {name}: " + "; ".join(wrong), file=sys.stderr)
            return 1
        print(report(data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
