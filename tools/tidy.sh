#!/usr/bin/env bash
# clang-tidy (checks: .clang-tidy) over the C++ sources that a change touches.
#   tools/tidy.sh [BUILD_DIR]          files that differ from the merge base with main; on main itself: from the commit before
#   tools/tidy.sh BUILD_DIR FILE...    these files
# A changed header is looked at through the source of the same name. At most THRICE_TIDY_FILES files (24) and THRICE_TIDY_SECONDS
# seconds (240) a file list: what is left out is named. Needs compile_commands.json of a configured build.
set -u
cd "$(dirname "$0")/.."
build=${1:-build/${THRICE_PRESET:-release}}
[ $# = 0 ] || shift
limit=${THRICE_TIDY_FILES:-24} seconds=${THRICE_TIDY_SECONDS:-240}
skip() { echo "skipped: $1"; exit 0; }
command -v clang-tidy >/dev/null || skip "clang-tidy is not installed (tools/setup.sh --test)"
[ -f "$build/compile_commands.json" ] || { echo "tidy: $build is not configured"; exit 1; }

files=("$@")
if [ ${#files[@]} = 0 ]; then
  base=
  for name in origin/main main; do
    found=$(git merge-base HEAD "$name" 2>/dev/null) && [ "$found" != "$(git rev-parse HEAD)" ] && { base=$found; break; }
  done
  base=${base:-$(git rev-parse -q --verify HEAD~1)} || skip "there is no commit to compare with (a shallow checkout?)"
  [ -n "$base" ] || skip "there is no commit to compare with (a shallow checkout?)"
  mapfile -t files < <({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } |
    sed -n 's/\.h$/.cc/; /\.cc$/p' | sort -u)
fi
chosen=()
for file in "${files[@]}"; do
  [ -f "$file" ] && grep -qF "/$file\"" "$build/compile_commands.json" && chosen+=("$file")
done
[ ${#chosen[@]} -gt 0 ] || { echo "tidy: no C++ source changed"; exit 0; }
if [ ${#chosen[@]} -gt "$limit" ]; then
  echo "tidy: ${#chosen[@]} files changed; left out: ${chosen[*]:limit}"
  chosen=("${chosen[@]:0:limit}")
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf '%s\0' "${chosen[@]}" | timeout "$seconds" xargs -0 -n 1 -P "${THRICE_JOBS:-$(nproc)}" \
  clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option >"$log" 2>/dev/null
code=$?
sort -u "$log" | grep -E ': (warning|error): '
[ $code != 124 ] || { echo "tidy: stopped after $seconds s; what was looked at until then has been shown"; code=0; }
[ $code = 0 ] && ! grep -qE ': error: ' "$log" || { echo "tidy: findings in ${#chosen[@]} files"; exit 1; }
echo "tidy: ${#chosen[@]} files, nothing found"
