#!/usr/bin/env python3
"""How equal two runs of `thrice optimize --json` chose: for each workload both deployed, equal schedules, or times in the model
within 1% of each other.

    bench/same_choices.py A.json B.json [--records A.csv B.csv] [--out FILE]

Each run from cold (its own --cache). Times are those of the regions in whole executions of the model (`now_us`), of either run.
--records: both runs' --record files. A budget in time ends two runs after different numbers of trials; so they are also compared as if
both had ended after the fewer, each schedule by the times of single trials (what is 1% faster replaces; no duels)."""
import argparse
import csv
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


def chosen(rows, trials):
    """Workload -> schedule, after so many trials of the search; and the times of all verified schedules by (workload, schedule)."""
    best, times, made = {}, {}, 0
    for row in rows:
        workload, schedule = row["workload"], f"{row['family']}/{row['tactic']} {row['parameters']}"
        is_default = row["default"] == "1"
        made += not is_default
        if row["outcome"] != "ok" or made > trials:
            continue
        us = times[workload, schedule] = float(row["time_us"])
        if is_default or (workload in best and us < 0.99 * times[workload, best[workload]]):
            best[workload] = schedule
    return best, times


def at_equal_trials(a, b):
    def tried(rows):
        return [(row["workload"], row["family"], row["tactic"], row["parameters"]) for row in rows if row["default"] != "1"]
    trials = min(len(tried(a)), len(tried(b)))
    (x, x_us), (y, y_us) = chosen(a, trials), chosen(b, trials)
    rows, equal, near = [], 0, 0
    for workload in sorted(x.keys() & y.keys()):
        if x[workload] == y[workload]:
            equal += 1
            continue
        ratios = [us[workload, x[workload]] / us[workload, y[workload]] for us in (x_us, y_us)
                  if (workload, x[workload]) in us and (workload, y[workload]) in us]  # both of them in one run
        apart = max(max(r, 1 / r) for r in ratios) - 1 if ratios else None
        near += apart is not None and apart <= 0.01
        rows.append({"workload": workload, "first": x[workload], "second": y[workload], "apart": apart})
    workloads = len(x.keys() & y.keys())
    return {"trials": trials, "made": [len(tried(a)), len(tried(b))], "candidates_of_both": len(set(tried(a)) & set(tried(b))),
            "workloads": workloads, "equal": equal, "equal_or_within_1_percent": equal + near,
            "share": (equal + near) / max(1, workloads), "different": rows}


def records(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first")
    parser.add_argument("second")
    parser.add_argument("--records", nargs=2)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    result = compare(regions_of(arguments.first), regions_of(arguments.second))
    if arguments.records:
        result["at_equal_trials"] = at_equal_trials(*map(records, arguments.records))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['equal_or_within_1_percent']} of {result['workloads']} equal or within 1% ({result['equal']} equal)")
    if arguments.records:
        same = result["at_equal_trials"]
        print(f"after {same['trials']} trials each: {same['equal_or_within_1_percent']} of {same['workloads']} ({same['equal']} equal)")


if __name__ == "__main__":
    main()
