"""The one form of results files, bench/results/<device>/<topic>.json: checks and joins them.

    {"schema": 1, "runs": [RUN...], "cases": [CASE...]}

RUN says who measured where: id, date, command, environment. CASE is one row of a suite, of one run. Times are microseconds
(medians); a key that was not measured is absent, never zero. docs/measurement.md explains the keys.
"""
from __future__ import annotations

import math

SCHEMA = 1
RUN_KEYS = {"id": str, "date": str, "command": str, "tree_hash": str, "environment": dict, "anchor": dict}
RUN_NEEDS = ("id", "date", "command", "environment")
TIMES = ("thrice_us", "thrice_burst_us", "thrice_sustained_us", "thrice_own_us")
NUMBERS = (*TIMES, "thrice_spread_us", "error", "error_limit", "state_error", "sol_us", "peak_bytes", "weight_bytes", "held_weight_bytes", "device_bytes", "trials", "tuning_s", "samples")
TEXTS = ("run", "suite", "name", "family", "shape", "dtype", "numerics", "sol_bound", "tactic", "schedule", "note")
TABLES = ("rivals", "rivals_spread_us", "rivals_error", "rivals_peak_bytes", "rivals_weight_bytes")  # rival -> number
CASE_NEEDS = ("run", "suite", "name", "dtype", "numerics", "rivals")
MAY_BE_ZERO = ("thrice_spread_us", "rivals_spread_us", "rivals_error", "error", "trials")


def _number(place: str, key: str, value: object) -> list[str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return [f"{place}: {key} is {value!r}, not a finite number"]
    if value < 0 or (value == 0 and key not in MAY_BE_ZERO):
        return [f"{place}: {key} is {value}; leave out what was not measured"]
    return []


def _case(place: str, case: dict, runs: set) -> list[str]:
    found = [f"{place}: {key} is missing" for key in CASE_NEEDS if key not in case]
    for key, value in case.items():
        if key in NUMBERS:
            found += _number(place, key, value)
        elif key in TABLES and isinstance(value, dict):
            for rival, number in value.items():
                found += [e.replace(f"{key} is", f"{key}.{rival} is") for e in _number(place, key, number)]
        elif key not in TEXTS or not isinstance(value, str):
            found.append(f"{place}: {key} = {value!r} is no key of the schema, or of another type")
    if case.get("run") not in runs:
        found.append(f"{place}: run '{case.get('run')}' is not among the runs")
    if not any(key in case for key in TIMES):
        found.append(f"{place}: no time of thrice")
    if "error" in case and "error_limit" not in case:
        found.append(f"{place}: an error without the limit that was applied")
    if case.get("sol_bound", "memory") not in ("memory", "compute", "launch"):
        found.append(f"{place}: sol_bound is {case['sol_bound']!r}")
    return found


def problems(data: object) -> list[str]:
    """What is wrong with a results file's content; empty when nothing is."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return [f"not a results file of schema {SCHEMA}"]
    found = [f"unknown key '{key}'" for key in data if key not in ("schema", "runs", "cases")]
    runs: set = set()
    for i, run in enumerate(data.get("runs", [])):
        found += [f"run {i}: {key} is missing" for key in RUN_NEEDS if key not in run]
        found += [f"run {i}: {key} = {value!r} is no key of the schema, or of another type" for key, value in run.items()
                  if not isinstance(value, RUN_KEYS.get(key, ()))]
        if run.get("id") in runs:
            found.append(f"run {i}: id '{run['id']}' is there twice")
        runs.add(run.get("id"))
    seen: set = set()
    for i, case in enumerate(data.get("cases", [])):
        found += _case(f"case {i} ({case.get('suite')}/{case.get('name')})", case, runs)
        key = tuple(case.get(k) for k in ("run", "suite", "name", "shape", "dtype", "numerics"))
        if key in seen:
            found.append(f"case {i}: {key} is there twice")
        seen.add(key)
    return found


def join(files: list[dict]) -> dict:
    """One file of several: of a case that several hold, the last file's counts; runs that no case names go."""
    cases: dict = {}
    for data in files:
        for case in data["cases"]:
            cases[tuple(case.get(k) for k in ("suite", "name", "shape", "dtype", "numerics"))] = case
    named = {case["run"] for case in cases.values()}
    runs = {run["id"]: run for data in files for run in data["runs"] if run["id"] in named}
    return {"schema": SCHEMA, "runs": [runs[i] for i in sorted(runs)],
            "cases": sorted(cases.values(), key=lambda c: (c["suite"], c["name"], c.get("shape", "")))}
