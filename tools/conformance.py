#!/usr/bin/env python3
"""Runs the ONNX node tests on the float64 interpreter and on a device, and writes what came out.

    tools/conformance.py BUILD_DIR [--device opencl:0] [--jobs 2] [--write] [--output FILE]

--output writes the figures as JSON. --write updates bench/results/conformance.json and docs/coverage.md; without it only the summary is printed. The last line is
`N passed, N failed`: a failure is a wrong result, or a set in which fewer than 85% of the tests that are not random pass.
"""
import argparse
import collections
import datetime
import json
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_OPSET = 24  # newer tests are run and shown, but do not count


def run_shards(build, folders, device, jobs):
    """Starts `jobs` processes over the folders; yields one dictionary a test."""
    command = [str(build / "run_node_tests"), "--cache", str(build / "conformance_cache")]
    if device:
        command += ["--device", device]
    running = [
        subprocess.Popen(command + ["--shard", f"{i}/{jobs}"] + folders, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for i in range(jobs)
    ]
    for process in running:
        for line in process.stdout:
            yield json.loads(line)
        if process.wait() != 0:
            raise SystemExit(f"run_node_tests ended with code {process.returncode}: a test brought the process down")


def summarize(rows, engine):
    count = collections.Counter(row[engine]["word"] for row in rows if engine in row)
    total = sum(count.values())
    judged = total - count["random"] - count["faulty"]
    return {
        "passed": count["pass"], "refused": count["refused"], "random": count["random"], "faulty": count["faulty"],
        "wrong": count["wrong"] + count["error"], "total": total, "share": round(count["pass"] / judged, 4) if judged else 0,
    }


def coverage_table(rows, operators):
    """Markdown: one line an operator, passed/total on each engine, over the tests that name it first."""
    table = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for row in rows:
        for operator in operators.get(row["name"], [])[:1]:
            for engine in ("interpreter", "device"):
                if engine in row:
                    table[operator][engine][row[engine]["word"]] += 1
    lines = ["| operator | interpreter | OpenCL | refused on OpenCL because |", "|---|---|---|---|"]
    reasons = {}
    for row in rows:
        for operator in operators.get(row["name"], [])[:1]:
            if row.get("device", {}).get("word") == "refused":
                reasons.setdefault(operator, row["device"]["reason"].split(": ", 1)[-1][:140].replace("|", "/"))
    for operator in sorted(table):
        cells = [f"{table[operator][e]['pass'] + table[operator][e]['random']}/{sum(table[operator][e].values())}" for e in ("interpreter", "device")]
        lines.append(f"| {operator} | {cells[0]} | {cells[1]} | {reasons.get(operator, '')} |")
    return "\n".join(lines)


def device_text(build, device):
    """The device as `thrice devices` names it, with its driver, where the executable lies beside."""
    try:
        text = subprocess.run([str(build / "thrice"), "devices", "--json"], stdout=subprocess.PIPE, text=True, check=True).stdout
        for backend in json.loads(text)["backends"]:
            for found in backend["devices"]:
                if found["id"] == device:
                    return f"{device} {found['name']}, driver {found['driver']}"
    except (OSError, subprocess.CalledProcessError, KeyError, ValueError):
        pass
    return device


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    if not (args.build / "run_node_tests").is_file():
        raise SystemExit(f"conformance: {args.build}/run_node_tests is not built; build all with: cmake --build {args.build}")
    listed = args.build / "node_tests" / "index.json"
    if not listed.is_file():
        print("conformance: the tests are not laid out yet: tools/node_tests.py", flush=True)
        if subprocess.run([sys.executable, ROOT / "tools/node_tests.py", args.build], check=False).returncode != 0:
            raise SystemExit(f"conformance: tools/node_tests.py {args.build} failed (see above); it needs tools/setup.sh --test")
    index = json.loads(listed.read_text())
    tests = index["tests"]
    opset = {(t["suite"], t["name"]): t["opset"] for t in tests}
    operators = {t["name"]: t["operators"] for t in tests}
    result, newer, all_rows, passed, failed = {}, {}, [], 0, 0
    for source in ("debian", "onnx"):
        rows = list(run_shards(args.build, [str(args.build / "node_tests" / source)], args.device, args.jobs))
        counted = [r for r in rows if opset.get((source, r["name"]), 0) <= MAX_OPSET]
        all_rows += rows
        for engine in ("interpreter", "device"):
            summary = summarize(counted, engine)
            name = args.device.split(":")[0] if engine == "device" else engine
            result.setdefault(source, {})[name] = summary
            print(f"{source:7} {name:12} {summary}")
            good = summary["wrong"] == 0 and summary["share"] >= 0.85
            passed, failed = passed + good, failed + (not good)
            for row in counted:
                if row[engine]["word"] in ("wrong", "error"):
                    print(f"  {row[engine]['word']}: {row['name']} on {name}: {row[engine]['reason']}")
        later = [r for r in rows if opset.get((source, r["name"]), 0) > MAX_OPSET]
        for engine in ("interpreter", "device") if later else ():
            name = args.device.split(":")[0] if engine == "device" else engine
            newer.setdefault(source, {})[name] = summarize(later, engine)
            print(f"{source:7} {name:12} opset {MAX_OPSET + 1} and newer, not counted: {newer[source][name]}")
    record = {
        "schema": 1, "date": datetime.date.today().isoformat(),
        "command": f"tools/conformance.py BUILD_DIR --device {args.device}",
        "environment": {"host_cpu": platform.processor() or platform.machine(), "device": device_text(args.build, args.device),
                        "onnx": index.get("onnx_version", "")},
        "max_opset": MAX_OPSET, "sets": result, "newer_opsets": newer,
    }
    if args.output:
        args.output.write_text(json.dumps(record, indent=1) + "\n")
    if args.write:
        (ROOT / "bench/results").mkdir(parents=True, exist_ok=True)
        (ROOT / "bench/results/conformance.json").write_text(json.dumps(record, indent=1) + "\n")
        text = ["# Which operators run", "",
                "Generated by `tools/conformance.py BUILD_DIR --write` from ONNX's node tests (Debian's, and those of the onnx package); do not edit. A cell is passed/all tests whose first operator it is.", ""]
        for source, engines in result.items():
            for name, s in engines.items():
                text.append(f"- {source}, {name}: {s['passed']} passed, {s['refused']} refused, {s['random']} random, {s['faulty']} faulty tests, {s['wrong']} wrong of {s['total']}")
        (ROOT / "docs/coverage.md").write_text("\n".join(text) + "\n\n" + coverage_table(all_rows, operators) + "\n")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
