#!/usr/bin/env bash
# Unpacks every tests/data/NAME.tar.zst to BUILD_DIR/data/NAME; an archive that has not changed is left alone. Several
# processes may call it at once.
#   tools/unpack_data.sh BUILD_DIR [NAME...]
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: tools/unpack_data.sh BUILD_DIR [NAME...]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
command -v zstd >/dev/null || { echo "unpack_data: zstd is not installed; run tools/setup.sh --build" >&2; exit 1; }
mkdir -p "$1/data"
data=$(cd "$1/data" && pwd)
shift
[ $# -gt 0 ] || set -- $(cd "$root/tests/data" && for file in *.tar.zst; do echo "${file%.tar.zst}"; done)
exec 9>"$data/.lock"
flock 9
for name in "$@"; do
  archive=$root/tests/data/$name.tar.zst
  [ -f "$archive" ] || { echo "unpack_data: no archive tests/data/$name.tar.zst" >&2; exit 1; }
  digest=$(sha256sum <"$archive")
  if [ "$(cat "$data/.$name.digest" 2>/dev/null)" = "$digest" ] && [ -d "$data/$name" ]; then continue; fi
  rm -rf "$data/.unpacking" "${data:?}/$name" "$data/.$name.digest"
  mkdir "$data/.unpacking"
  zstd -q -d -c "$archive" | tar -C "$data/.unpacking" --no-same-owner -xf -
  mv "$data/.unpacking/$name" "$data/$name"
  rmdir "$data/.unpacking"
  printf '%s\n' "$digest" >"$data/.$name.digest"
  echo "unpack_data: $name -> $data/$name ($(find "$data/$name" -type f | wc -l) files)"
done
