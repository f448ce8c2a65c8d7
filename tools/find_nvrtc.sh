#!/usr/bin/env bash
# Prints the path of the CUDA run-time compiler library, or says on stderr why there is none and exits 1.
# Order: THRICE_NVRTC (a file), a toolkit (CUDA_HOME, CUDA_PATH, /usr/local/cuda), the loader's cache, the wheel in .venv.
# The matching libnvrtc-builtins lies beside the file found; NVRTC opens it from there.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "${THRICE_NVRTC:-}" ]; then
  [ -f "$THRICE_NVRTC" ] && { echo "$THRICE_NVRTC"; exit 0; }
  echo "find_nvrtc: THRICE_NVRTC names $THRICE_NVRTC, which is not a file" >&2
  exit 1
fi
for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
  [ -n "$home" ] || continue
  for folder in lib64 lib targets/x86_64-linux/lib; do
    for name in libnvrtc.so.13 libnvrtc.so.12; do
      [ -f "$home/$folder/$name" ] && { echo "$home/$folder/$name"; exit 0; }
    done
  done
done
cached=$( (ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null) | awk '/libnvrtc\.so\.1[23] .*x86-64/ {print $NF; exit}')
[ -n "$cached" ] && [ -f "$cached" ] && { echo "$cached"; exit 0; }
for file in "$root"/.venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13; do
  [ -f "$file" ] && { echo "$file"; exit 0; }
done
echo "find_nvrtc: no libnvrtc found in a toolkit or in .venv; run tools/setup.sh --test, or set THRICE_NVRTC to the library" >&2
exit 1
