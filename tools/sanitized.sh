#!/usr/bin/env bash
# Tests of bad input, of the null device and of everything that parses or stores, under the address and undefined-behaviour
# sanitizers. They use the libraries of tools/fuzz_smoke.sh (clang, build/asan), so that little is compiled twice.
#   tools/sanitized.sh [TEST_TARGET...]   default: the list below; `all` = every unit, null and error test but null_networks,
#                                         whose large models do not end within eight minutes under them (it says so)
# Last line: `N passed, N failed`.
set -u
cd "$(dirname "$0")/.."
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(test_error_frontend test_null_flow test_null_measure test_null_runtime test_unit_release
  test_unit_store test_unit_jit test_unit_runtime test_unit_frontend)
skip() { echo "skipped: $1"; echo "0 passed, 0 failed"; exit 0; }
command -v clang++ >/dev/null || skip "clang is not installed (tools/setup.sh --test)"
cmake --preset asan || { echo "0 passed, 1 failed"; exit 1; }
if [ "${targets[0]}" = all ]; then
  mapfile -t targets < <(ninja -C build/asan -t targets all | grep -oE '^test_(unit|null|error)_[a-z_]+' |
    grep -v null_networks | sort -u)
  echo "skipped: test_null_networks: 54 large models take far more than eight minutes under the sanitizers; it runs without them"
fi
ninja -C build/asan -j "${THRICE_JOBS:-$(nproc)}" "${targets[@]}" || { echo "0 passed, 1 failed"; exit 1; }
passed=0 failed=0
for target in "${targets[@]}"; do
  # A vendor's or PoCL's driver keeps what it allocated until the process ends: no leak of ours.
  if ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 build/asan/"$target" >"build/asan/$target.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "$target: FAILED, log build/asan/$target.log"
    grep -E 'runtime error|ERROR: AddressSanitizer|SUMMARY|FAILED|Failure' "build/asan/$target.log" | head -n 20
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
