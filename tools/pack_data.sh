#!/usr/bin/env bash
# Packs a folder as tests/data/NAME.tar.zst, byte for byte the same each time for the same content.
#   tools/pack_data.sh NAME FOLDER      the archive holds NAME/...
set -euo pipefail
[ $# = 2 ] && [ -d "$2" ] || { echo "usage: tools/pack_data.sh NAME FOLDER" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
out=$root/tests/data/$1.tar.zst
tar -C "$2" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' --exclude=__pycache__ \
  --transform="s,^\.,$1," -cf - . | zstd -q -19 --long=24 -T1 -o "$out.part" -f
mv "$out.part" "$out"
echo "$out: $(stat -c %s "$out") bytes"
