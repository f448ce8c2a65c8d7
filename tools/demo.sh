#!/usr/bin/env bash
# Sets up, builds, and runs the main job on a real model: reads drawn text with PP-OCRv4, optimised for the best device found.
#   tools/demo.sh [--skip-setup] [--device T] [--budget 90s] [--json FILE]
# THRICE_PRESET (release) and THRICE_JOBS (number of cores) choose how it builds; logs and pictures: build/<preset>/demo/
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${THRICE_PRESET:-release}
jobs=${THRICE_JOBS:-$(nproc)}
out=build/$preset/demo
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0; fi
if [ "${1:-}" = --skip-setup ]; then shift; else tools/setup.sh --demo; fi
mkdir -p "$out"
export OMP_WAIT_POLICY=passive

begin=$SECONDS
echo "demo: building thrice (log: $out/build.log)"
{ cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs" --target thrice thrice_shared bench_naive_model; } >"$out/build.log" 2>&1 ||
  { tail -n 40 "$out/build.log"; echo "demo: the build failed" >&2; exit 2; }
echo "demo: built in $((SECONDS - begin)) s"
begin=$SECONDS
code=0
.venv/bin/python tools/ocr_demo.py --build "build/$preset" --out "$out" "$@" || code=$?
echo "demo: $((SECONDS - begin)) s after the build"
exit $code
