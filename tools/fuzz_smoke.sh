#!/usr/bin/env bash
# Builds the libFuzzer targets with clang (build/asan) and runs each for a while from its corpus. Last line: `N passed, N failed`.
#   tools/fuzz_smoke.sh [SECONDS A TARGET (20)]
# A finding is kept in build/asan/findings and named; put it, once mended, into tests/fuzz/corpus/NAME.
set -u
cd "$(dirname "$0")/.."
seconds=${1:-20}
skip() { echo "skipped: $1"; echo "0 passed, 0 failed"; exit 0; }
command -v clang++ >/dev/null || skip "clang is not installed (tools/setup.sh --test)"
runtime=$(clang++ -print-file-name=libclang_rt.fuzzer-x86_64.a)
[ -f "$runtime" ] || runtime=$(clang++ -print-resource-dir)/lib/x86_64-unknown-linux-gnu/libclang_rt.fuzzer.a
[ -f "$runtime" ] || runtime=$(clang++ -print-resource-dir)/lib/linux/libclang_rt.fuzzer-x86_64.a
[ -f "$runtime" ] || skip "clang's fuzzing runtime is not installed (apt-get install libclang-rt-dev)"

names=()
for source in tests/fuzz/fuzz_*.cc; do name=${source##*/fuzz_}; names+=("${name%.cc}"); done
cmake --preset asan &&
  ninja -C build/asan -j "${THRICE_JOBS:-$(nproc)}" "${names[@]/#/fuzz_}" || { echo "0 passed, 1 failed"; exit 1; }

passed=0 failed=0 running=()
mkdir -p build/asan/findings
for name in "${names[@]}"; do
  grown=build/asan/corpus/$name  # what the run finds goes here, not into the repository
  mkdir -p "$grown"
  build/asan/fuzz_"$name" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="build/asan/findings/$name-" "$grown" "tests/fuzz/corpus/$name" >"build/asan/$name.log" 2>&1 &
  running+=($!)
done
for i in "${!names[@]}"; do
  name=${names[i]}
  if wait "${running[i]}"; then
    passed=$((passed + 1))
    echo "$name: $(sed -n 's/stat::number_of_executed_units: *//p' "build/asan/$name.log") inputs in $seconds s, nothing found"
  else
    failed=$((failed + 1))
    echo "$name: FAILED"
    grep -vE '^#[0-9]+\s' "build/asan/$name.log" | tail -n 40
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
