#!/usr/bin/env bash
# Formats the C++ files, or checks them. The style is .clang-format; kernel texts (kernels/) are laid out by hand.
#   tools/format.sh --check [FILE...]   lists the files that differ; exit 1 when there are any
#   tools/format.sh --fix [FILE...]     rewrites them
# Only clang-format 14 decides (Debian 12): other versions break lines differently. Without it the check is skipped, with the reason.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:---check}
[ $# = 0 ] || shift
case "$mode" in
  --check | --fix) ;;
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "format: unknown option $mode; known: --check --fix" >&2; exit 2 ;;
esac

formatter=
for name in clang-format-14 clang-format; do
  if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then formatter=$name; break; fi
done
if [ -z "$formatter" ]; then
  echo "format: skipped: clang-format 14 is not installed (tools/setup.sh --dev; Ubuntu: apt-get install clang-format-14)"
  exit 0
fi

if [ $# -gt 0 ]; then
  files=("$@")
else
  folders=()
  for folder in include src tests bench examples; do [ ! -d "$folder" ] || folders+=("$folder"); done
  [ ${#folders[@]} -gt 0 ] || { echo "format: no C++ folder yet"; exit 0; }
  mapfile -t files < <(find "${folders[@]}" -type f \( -name '*.h' -o -name '*.cc' \) | sort)
fi
[ ${#files[@]} -gt 0 ] || { echo "format: no C++ file yet"; exit 0; }

if [ "$mode" = --fix ]; then
  "$formatter" -i --style=file "${files[@]}"
  echo "format: ${#files[@]} files formatted"
  exit 0
fi
differing=$(printf '%s\0' "${files[@]}" | xargs -0 -n 16 -P 2 "$formatter" --style=file --dry-run 2>&1 |
  sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort -u)
if [ -n "$differing" ]; then
  echo "$differing"
  echo "format: $(wc -l <<<"$differing") of ${#files[@]} files differ from .clang-format; run tools/format.sh --fix"
  exit 1
fi
echo "format: ${#files[@]} files follow .clang-format"
