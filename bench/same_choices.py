#!/usr/bin/env python3
"""How equal two runs of `thrice optimize --json` chose: for each workload both deployed, equal schedules, or times in the model
within 1% of each other.

    bench/same_choices.py A.json B.json [--out FILE]

Each run from cold (its own --cache). Times are those of the regions in whole executions of the model (`now_us`), of either run."""
import argparse
import json
import pathlib


def regions_of(path):
    text = pathlib.Path(path).read_text()
    return {region["workload"]: region for region in json.JSONDecoder().raw_decode(text)[0]["regions"]}


def compare(a, b):
    rows = []
    for workload in sorted(a.keys() & b.keys()):
        x, y = a[workload], b[workload]
        slower = max(x["now_us"], y["now_us"]) / max(1e-9, min(x["now_us"], y["now_us"])) - 1
        rows.append({"name": x["name"], "equal": x["schedule"] == y["schedule"], "apart": slower, "first": x["schedule"],
                     "second": y["schedule"], "first_us": x["now_us"], "second_us": y["now_us"], "trials": [x["trials"], y["trials"]]})
    same = sum(1 for row in rows if row["equal"] or row["apart"] <= 0.01)
    return {"workloads": len(rows), "equal": sum(1 for row in rows if row["equal"]), "equal_or_within_1_percent": same,
            "share": same / max(1, len(rows)), "only_in_one": len(a.keys() ^ b.keys()), "regions": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    result = compare(regions_of(arguments.first), regions_of(arguments.second))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['equal_or_within_1_percent']} of {result['workloads']} equal or within 1% ({result['equal']} equal)")


if __name__ == "__main__":
    main()
