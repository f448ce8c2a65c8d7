#!/usr/bin/env python3
"""Which region of a model got how many trials of its one budget, from a file of `thrice optimize --record`, and why: its share of the
model's time when tuning began, and the trials since its last gain (docs/measurement.md, Choosing).

    bench/budget_table.py RECORD.csv [--device NAME] [--command TEXT] [--out FILE.json]

A gain is a trial that was faster than any of its workload before by more than 1%; the choice itself is made face to face."""
import argparse
import csv
import json
import pathlib


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def table(trials):
    regions = {}
    for trial in trials:
        region = regions.setdefault(trial["workload"], {"name": trial["region"], "uses": int(trial["uses"]), "trials": 0, "failed": 0,
                                                        "trials_without_gain": 0})
        us = float(trial["time_us"])
        if trial["outcome"] != "ok":
            region["failed"] += 1
        if trial["default"] == "1":
            if trial["outcome"] == "ok":
                region["default_us"] = region["best_us"] = us
            continue
        region["trials"] += 1
        region["trials_without_gain"] += 1
        if trial["outcome"] == "ok" and us < 0.99 * region.get("best_us", 0):
            region["best_us"] = us
            region["trials_without_gain"] = 0
    rows = [row for row in regions.values() if "default_us" in row]
    whole = sum(row["default_us"] * row["uses"] for row in rows)
    for row in rows:
        row["share_at_start"] = row["default_us"] * row["uses"] / whole
    return sorted(rows, key=lambda row: -row["share_at_start"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record")
    parser.add_argument("--device", default="")
    parser.add_argument("--command", default="")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = table(read(arguments.record))
    print(f"{'region':44} {'uses':>4} {'default us':>10} {'share':>6} {'trials':>6} {'no gain':>7} {'best us':>8}")
    for row in rows:
        print(f"{row['name'][:44]:44} {row['uses']:4} {row['default_us']:10.1f} {row['share_at_start']:6.1%} {row['trials']:6}"
              f" {row['trials_without_gain']:7} {row['best_us']:8.1f}")
    print(f"{sum(row['trials'] for row in rows)} trials of {len(rows)} regions")
    if arguments.out:
        arguments.out.write_text(json.dumps({"device": arguments.device, "command": arguments.command,
                                             "trials": sum(row["trials"] for row in rows), "regions": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
