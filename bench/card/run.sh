#!/usr/bin/env bash
# Runs jobs on a machine with a card, one after the other, each up to its limit. Exit 1 when one failed.
#   bench/card/run.sh JOB...      results, and log.txt, in $OUT/JOB/ ($OUT: card_results/ where it is not set)
#   bench/card/run.sh --pack JOB...    one archive $OUT/results.tar.gz instead of folders, for machines that return few files
# $SECONDS_LEFT: no job is begun that may not end within so many seconds.
set -u
cd "$(dirname "$0")/../.."
pack=0
[ "${1:-}" != --pack ] || { pack=1; shift; }
[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
all=${OUT:-$PWD/card_results} failed=0
export CARD=$PWD/build/card PYTHONPATH=$PWD/python:$PWD/bench THRICE_LIBRARY=$PWD/build/card/lib/libthrice.so.1
export THRICE_EXECUTABLE=$CARD/bin/thrice PATH=$CARD/bin:$PATH WORK
WORK=$(mktemp -d)  # caches and releases: not kept
trap 'rm -rf "$WORK"' EXIT
for job in "$@"; do
  file=bench/card/jobs/$job.sh
  [ -f "$file" ] || { echo "run: no job $job" >&2; failed=1; continue; }
  limit=$(sed -n 's/^# limit //p' "$file")
  if [ -n "${SECONDS_LEFT:-}" ] && [ $((SECONDS + limit)) -gt "$SECONDS_LEFT" ]; then
    echo "$job: not begun, ${SECONDS_LEFT} s would not do"
    continue
  fi
  mkdir -p "$all/$job" "$WORK/$job"
  begin=$SECONDS
  OUT=$all/$job WORK=$WORK/$job timeout -k 5 "$limit" bash -eu "$file" >"$all/$job/log.txt" 2>&1
  code=$?
  [ $code = 0 ] || failed=1
  echo "$job: exit $code after $((SECONDS - begin)) s: $(tail -n 1 "$all/$job/log.txt" | cut -c1-160)"
done
if [ $pack = 1 ]; then
  tar -C "$all" -czf "$all.tar.gz" . && rm -rf "${all:?}"/* && mv "$all.tar.gz" "$all/results.tar.gz"
fi
exit $failed
