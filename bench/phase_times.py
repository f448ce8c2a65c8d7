#!/usr/bin/env python3
"""Prints where the time of `thrice optimize` went, as a Markdown table, from the reports that `thrice optimize --json` prints.

    bench/phase_times.py FILE...

A phase that runs more than once (both plans, timing before and after) is added up. Several files are columns side by side; docs/measurement.md
says how its tables were made.
"""
from __future__ import annotations

import json
import pathlib
import sys


def phases(report: dict) -> dict:
    """Seconds by phase, in the order of the flow."""
    seconds: dict = {}
    for entry in report["phases"]:
        seconds[entry["phase"]] = seconds.get(entry["phase"], 0.0) + entry["seconds"]
    return seconds


def table(reports: list) -> str:
    columns = [phases(report) for report in reports]
    names = list(dict.fromkeys(name for column in columns for name in column))
    titles = [f"{pathlib.Path(report['model']).stem}, {report['device']}" for report in reports]
    lines = ["| phase | " + " | ".join(f"{title}: s | share" for title in titles) + " |", "|---" + "|---:|---:" * len(reports) + "|"]
    for name in [*names, "sum"]:
        cells = []
        for column in columns:
            whole = sum(column.values())
            value = whole if name == "sum" else column.get(name)
            cells.append(" | " if value is None else f"{value:.2f} | {100 * value / whole if whole else 0:.0f} %")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def about(report: dict) -> str:
    verified = "verified" if report.get("verified") else "not verified"
    return f"`{pathlib.Path(report['model']).stem}` at {report['timed_at'] or 'fixed extents'}: {report['trials']} trials, {verified}."


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2
    reports = []
    for name in sys.argv[1:]:
        try:
            report = json.loads(pathlib.Path(name).read_text())
            if not report["phases"] or any(not entry["seconds"] >= 0 for entry in report["phases"]):
                raise ValueError("a phase without a time")
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"phase_times: {name}: no report of `thrice optimize --json`: {error!r}", file=sys.stderr)
            return 1
        reports.append(report)
    print(table(reports))
    print()
    for report in reports:
        print(f"- {about(report)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
