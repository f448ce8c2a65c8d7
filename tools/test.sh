#!/usr/bin/env bash
# Sets up, builds and tests everything that needs no GPU. The last line is `N passed, N failed`, counting steps and tests together.
#   tools/test.sh                    all steps
#   tools/test.sh --only unit,tools  setup, configure and build, and then only the steps named
#   tools/test.sh --skip-setup       the machine is set up already
#   tools/test.sh --quick            without the steps that take minutes (kernels, CUDA texts, oclgrind, conformance)
#   tools/test.sh --list             names of the steps
# THRICE_PRESET (release) and THRICE_JOBS (number of cores) choose how it builds; logs: build/<preset>/test_logs/<step>.log,
# seconds of each step: times.json beside them
#
# Adding a step is one line in "The steps" below: step NAME COMMAND... A step fails when its command does. When its log ends
# with a line `N passed, N failed` (tools/ctest_group.py, Python's unittest through tools/unittest_group.sh) those are added to the sum.
set -u
cd "$(dirname "$0")/.."

preset=${THRICE_PRESET:-release}
jobs=${THRICE_JOBS:-$(nproc)}
build=build/$preset
logs=$build/test_logs
python=.venv/bin/python
only='' list=0 run_setup=1 run_long=1
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only=,${2:?--only needs names}, && shift ;;
    --skip-setup) run_setup=0 ;;
    --list) list=1 ;;
    --quick) run_long=0 ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "test: unknown option $1; known: --only --skip-setup --quick --list" >&2; exit 2 ;;
  esac
  shift
done
mkdir -p "$logs"
export OMP_WAIT_POLICY=passive  # spinning OpenMP threads starve every other process of a small machine
export GTEST_COLOR=no CLICOLOR=0 THRICE_BUILD_DIR=$PWD/$build

# What a driver (PoCL, LLVM) keeps until the process ends is no leak of ours.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
passed=0 failed=0 broken='' failures=() times='' started=$SECONDS

# step NAME COMMAND...: runs it with its log in a file, prints one line, adds to the sums. Always returns 0.
step() {
  local name=$1 log=$logs/$1.log begin=$EPOCHREALTIME code seconds counts extra=''
  shift
  if [ $list = 1 ]; then echo "$name"; return 0; fi
  if [ -n "$only" ] && [[ "$only" != *,$name,* ]]; then return 0; fi
  if [ -n "$broken" ]; then
    failed=$((failed + 1)) failures+=("$name")
    printf '[ -- ] %-16s not run: %s failed\n' "$name" "$broken"
    return 0
  fi
  "$@" >"$log" 2>&1
  code=$?
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
  times+="${times:+, }\"$name\": $seconds"
  counts=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p')
  if [ -n "$counts" ]; then
    passed=$((passed + ${counts% *})) failed=$((failed + ${counts#* }))
    extra="$(tail -n 1 "$log")"
  else
    extra=$(tail -n 1 "$log" | cut -c1-100)
  fi
  if [ $code = 0 ]; then
    passed=$((passed + 1))
    printf '[ ok ] %-16s %7s s  %s\n' "$name" "$seconds" "$extra"
    grep -hE '\bskipped: ' "$log" | sort -u | head -n 8 | sed 's/^/         /'
  else
    failed=$((failed + 1)) failures+=("$name")
    printf '[FAIL] %-16s %7s s  exit %d, log %s\n' "$name" "$seconds" "$code" "$log"
    tail -n 40 "$log" | sed 's/^/         /'
  fi
  return 0
}

# As step; the steps after it cannot run when it fails.
must() {
  local before=$failed keep=$only
  only=''
  step "$@"
  only=$keep
  [ $failed = "$before" ] || broken=${broken:-$1}
}

configure() { cmake --preset "$preset"; }
build() { cmake --build --preset "$preset" -j "$jobs"; }
group() { $python tools/ctest_group.py "$build" "$@"; }
# The kernel tests also keep their CUDA texts, for the step cuda_texts: no old ones among them.
cross() {
  rm -f "$build"/cuda_texts/*.cu
  group cross -j "$jobs"
}

# ---- The steps ----
[ $run_setup = 0 ] || must setup tools/setup.sh --test
must configure configure
must build build
step layers $python tools/check_layers.py
step sizes $python tools/sizes.py --strict
step format tools/format.sh --check
step tools tools/unittest_group.sh tests/tools
[[ $preset == *san ]] || step python tools/unittest_group.sh tests/python  # Python itself is not built with a sanitizer
step unit group unit
step null group null
step error group error
step fault group fault
step fuzz group fuzz
# Minutes each on two cores: tools/test.sh --quick leaves them out.
if [ $run_long = 1 ] || [ -n "$only" ] || [ $list = 1 ]; then
  step cross cross
  step cuda_texts $python tools/cuda_texts.py "$build" --jobs "$jobs"
  step oclgrind tools/oclgrind_check.sh
  step tidy tools/tidy.sh "$build"
  step fuzz_smoke tools/fuzz_smoke.sh 20
  step node_tests $python tools/node_tests.py "$build"
  step conformance $python tools/conformance.py "$build" --jobs "$jobs"
else
  echo "[skip] cross, cuda_texts, oclgrind, tidy, fuzz_smoke, node_tests, conformance: left out by --quick"
fi
# Long builds of their own, so by name alone: tools/test.sh --only sanitized,races
[[ "$only" != *,sanitized,* ]] || step sanitized tools/sanitized.sh
[[ "$only" != *,races,* ]] || step races tools/races.sh
# ---- end of the steps ----

[ $list = 0 ] || exit 0
printf '{"schema": 1, "date": "%s", "cpu": "%s", "cores": %d, "passed": %d, "failed": %d, "total_s": %d, "steps_s": {%s}}\n' \
  "$(date -u +%F)" "$(sed -nE 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" $passed $failed \
  $((SECONDS - started)) "$times" >"$logs/times.json"
[ ${#failures[@]} -eq 0 ] || echo "failed steps: ${failures[*]}"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
