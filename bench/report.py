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


def memory_table(cases: list) -> str:
    """Device memory beside the weights, in MB of 10^6 bytes; docs/measurement.md says what counts."""
    cases = [case for case in cases if "peak_bytes" in case and case.get("rivals_peak_bytes")]
    if not cases:
        return ""
    rivals = sorted({rival for case in cases for rival in case["rivals_peak_bytes"]})
    lines = ["| case | thrice MB | weights held / weights MB | " + " | ".join(f"{r} MB" for r in rivals) + " |", "|---" * (3 + len(rivals)) + "|"]
    for case in cases:
        weights = f"{case['held_weight_bytes'] / 1e6:.1f} / {case['weight_bytes'] / 1e6:.1f}" if "held_weight_bytes" in case else ""
        row = [case["name"], f"{case['peak_bytes'] / 1e6:.1f}", weights]
        for rival in rivals:
            peak = case["rivals_peak_bytes"].get(rival)
            row.append("" if peak is None else f"{peak / 1e6:.1f} ({case['peak_bytes'] / peak:.2f})")
        lines.append("| " + " | ".join(row) + " |")
    lines.append("")
    for rival in rivals:
        ratios = {c["name"]: c["peak_bytes"] / c["rivals_peak_bytes"][rival] for c in cases if rival in c["rivals_peak_bytes"]}
        most = max(ratios, key=ratios.get)
        lines.append(f"- memory against {rival}: geometric mean {statistics.geometric_mean(ratios.values()):.2f} of {len(ratios)} cases, "
                     f"most {ratios[most]:.2f} ({most})")
    return "\n".join(lines)


def report(data: dict) -> str:
    parts = []
    for suite in dict.fromkeys(case["suite"] for case in data["cases"]):
        cases = [case for case in data["cases"] if case["suite"] == suite]
        parts.append(suite_table(suite, cases))
        if memory := memory_table(cases):
            parts.append(memory)
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
