#!/usr/bin/env bash
# Tests of what runs on several threads (sessions, streams, kernel cache, sampler of live state, store, tuner), and one tuned and
# checked run of the command line, under the thread sanitizer (preset tsan, build/tsan).
#   tools/races.sh [TEST_TARGET...]   default: the list below
# A data race anywhere, in a driver's calls into us too, fails the test it happens in. Last line: `N passed, N failed`.
set -u
cd "$(dirname "$0")/.."
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(test_null_runtime test_null_flow test_unit_runtime test_unit_backend test_unit_backend_cuda
  test_unit_base test_unit_exec test_unit_hardware test_unit_jit test_unit_store test_unit_tune)
cmake --preset tsan && ninja -C build/tsan -j "${THRICE_JOBS:-$(nproc)}" thrice "${targets[@]}" || { echo "0 passed, 1 failed"; exit 1; }
export TSAN_OPTIONS="history_size=4 ${TSAN_OPTIONS:-}" OMP_WAIT_POLICY=passive
passed=0 failed=0
# run NAME COMMAND...
run() {
  local log=build/tsan/$1.log
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$log: FAILED"
    grep -E '^SUMMARY|FAILED|Failure' "$log" | sort | uniq -c | head -n 20
  fi
}
for target in "${targets[@]}"; do run "$target" "build/tsan/$target"; done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run optimize build/tsan/thrice optimize build/tsan/data/cases/001-conv-add-grouped/model.onnx --budget 10s --quiet \
  --cache "$folder" --output "$folder/model.thrice"
run run build/tsan/thrice run "$folder/model.thrice" --cache "$folder" --check
run watch build/tsan/thrice devices --watch --interval 20ms --count 20
echo "$passed passed, $failed failed"
[ $failed = 0 ]
