#!/usr/bin/env bash
# Runs generated OpenCL kernels under oclgrind, which sees data races between work-items and accesses beyond a buffer.
#   tools/oclgrind_check.sh [TEST_BINARY] [GTEST_FILTER]
# Default: build/<preset>/test_cross_oclgrind, all its tests. Fails when a test fails, when oclgrind reports anything, and
# when it does NOT report a race and an access that the binary plants for that purpose.
set -u
cd "$(dirname "$0")/.."
binary=${1:-build/${THRICE_PRESET:-release}/test_cross_oclgrind}
filter=${2:-Kernels.*}
icd=$(find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2>/dev/null | head -n 1)
if [ -z "$icd" ]; then echo "skipped: oclgrind is not installed (apt-get install oclgrind)"; echo "0 passed, 0 failed"; exit 0; fi
if [ ! -x "$binary" ]; then echo "oclgrind: $binary is not built"; exit 1; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The loader looks only into this folder, so that no other platform (PoCL) is picked.
echo "$icd" >"$work/oclgrind.icd"
under() {
  OCL_ICD_VENDORS=$work OCLGRIND_DATA_RACES=1 OCLGRIND_MAX_ERRORS=100 OCLGRIND_LOG=$work/log "$binary" "$@"
}
passed=0 failed=0

: >"$work/log"
under --gtest_also_run_disabled_tests --gtest_filter='Planted.*' >"$work/planted" 2>&1
if grep -q -i 'data race' "$work/log" && grep -q -i 'invalid write' "$work/log"; then
  passed=$((passed + 1)); echo "planted race and access beyond the end: seen"
else
  failed=$((failed + 1)); echo "planted race or access beyond the end: NOT seen"; cat "$work/planted" "$work/log"
fi

: >"$work/log"
if under --gtest_filter="$filter" && [ ! -s "$work/log" ]; then
  passed=$((passed + 1)); echo "generated kernels: nothing reported"
else
  failed=$((failed + 1)); echo "generated kernels: reports follow"; head -n 120 "$work/log"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
