#!/usr/bin/env bash
# Builds what jobs need on a machine with a card, and lays it into build/card/: bin/, lib/, data/.
#   bench/card/load.sh JOB...     jobs are the files of bench/card/jobs/
#   bench/card/load.sh --list     their names, limits and first lines
set -euo pipefail
cd "$(dirname "$0")/../.."
jobs=bench/card/jobs to=build/card build=build/portable
case "${1:-}" in
  '' | -h | --help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
  --list) for job in "$jobs"/*.sh; do printf '%-14s %4s s  %s\n' "$(basename "$job" .sh)" "$(sed -n 's/^# limit //p' "$job")" "$(sed -n '2s/^# //p' "$job")"; done; exit 0 ;;
esac
targets=() data=()
for job in "$@"; do
  [ -f "$jobs/$job.sh" ] || { echo "load: no job $job; known: $(basename -s .sh "$jobs"/*.sh | tr '\n' ' ')" >&2; exit 2; }
  for name in $(sed -n 's/^# needs //p' "$jobs/$job.sh"); do
    case "$name" in zoo | ocr) data+=("$name") ;; *) targets+=("$name") ;; esac
  done
done
mapfile -t targets < <(printf '%s\n' thrice thrice_shared "${targets[@]}" | sort -u)
cmake --preset portable >/dev/null
cmake --build "$build" -j "${THRICE_JOBS:-$(nproc)}" --target "${targets[@]}"
rm -rf "$to"
mkdir -p "$to"/{bin,lib,data}
strip --strip-unneeded -o "$to/lib/libthrice.so.1" "$build/libthrice.so.1"
for target in "${targets[@]}"; do
  [ "$target" = thrice_shared ] || strip --strip-unneeded -o "$to/bin/$target" "$build/$target"
done
for name in "${data[@]}"; do
  case "$name" in
    zoo) cp -r "$build/data/zoo" "$to/data/" ;;
    ocr) mkdir -p "$to/data/ocr" && cp .models/*.onnx "$to/data/ocr/" ;;
  esac
done
python3 tools/check_portable.py "$to"/bin/* "$to"/lib/*
echo "$to: $(du -sm "$to" | cut -f1) MiB; there: bench/card/run.sh $*"
