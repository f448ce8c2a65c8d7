#!/usr/bin/env bash
# Installs what the build, the demo and the tests need on Debian 12 or Ubuntu 24.04. Safe to run again: what is there stays.
#   tools/setup.sh            build + demo + tests
#   tools/setup.sh --build    compilers and libraries only
#   tools/setup.sh --demo     build + fonts, Python packages, OCR models
#   tools/setup.sh --test     build + demo + test packages; NVRTC from PyPI where no CUDA toolkit is found
#   tools/setup.sh --dev      everything + clang-format
# Needs root for apt (only when a package is missing), apt mirrors and PyPI. Writes .venv/ and .models/ in the repository.
# THRICE_OFFLINE=1 refuses every download and says what is missing instead.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
begin=$SECONDS

demo=0 test=0 dev=0
[ $# -gt 0 ] || { demo=1; test=1; }
for argument in "$@"; do
  case "$argument" in
    --build) ;;
    --demo) demo=1 ;;
    --test) demo=1; test=1 ;;
    --dev) demo=1; test=1; dev=1 ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup: unknown option $argument; known: --build --demo --test --dev" >&2; exit 2 ;;
  esac
done

say() { printf '[setup %3ds] %s\n' $((SECONDS - begin)) "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
# Runs a command silently; its whole output is shown only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    fail "failed: $*"
  fi
  rm -f "$log"
}

packages=(g++ cmake ninja-build pkg-config ccache git zstd ca-certificates python3 python3-venv
  libprotobuf-dev protobuf-compiler libyaml-cpp-dev libfmt-dev libsqlite3-dev nlohmann-json3-dev libcli11-dev libeigen3-dev
  libxxhash-dev libzstd-dev zlib1g-dev pocl-opencl-icd ocl-icd-opencl-dev ocl-icd-libopencl1)
# The build works without these; what needs them says that it is skipped.
optional=()
[ $demo = 0 ] || packages+=(fonts-dejavu-core fonts-liberation)
[ $test = 0 ] || { packages+=(libgtest-dev); optional+=(libonnx-testdata oclgrind clang clang-tidy libclang-rt-dev); }
[ $dev = 0 ] || packages+=(clang clang-format clang-tidy)

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
missing_of() { local name; for name in "$@"; do is_installed "$name" || echo "$name"; done; }

install_packages() {
  local missing wanted=() name
  command -v dpkg-query >/dev/null || fail "this script knows apt only (Debian 12, Ubuntu 24.04); install by hand: ${packages[*]}"
  # Ubuntu 24.04 names the fuzzing runtime by version only.
  if [ $test = 1 ] && ! is_installed libclang-rt-dev && is_installed libclang-rt-18-dev; then
    optional=("${optional[@]/libclang-rt-dev/libclang-rt-18-dev}")
  fi
  missing=$(missing_of "${packages[@]}" ${optional[@]+"${optional[@]}"})
  if [ -z "$missing" ]; then
    say "apt packages: all installed"
    return
  fi
  [ "${THRICE_OFFLINE:-0}" = 0 ] || fail "missing packages, and THRICE_OFFLINE is set: $(echo $missing)"
  [ "$(id -u)" = 0 ] || fail "not root; run: sudo apt-get install -y --no-install-recommends $(echo $missing)"
  say "apt packages: reading the lists"
  quietly env DEBIAN_FRONTEND=noninteractive apt-get -q update
  if [[ " $missing " == *libclang-rt-dev* ]] && ! apt-cache show libclang-rt-dev >/dev/null 2>&1; then
    missing=${missing/libclang-rt-dev/libclang-rt-18-dev}
    optional+=(libclang-rt-18-dev)
  fi
  for name in $missing; do
    if [[ " ${optional[*]-} " == *" $name "* ]] && ! apt-cache show "$name" >/dev/null 2>&1; then
      say "apt packages: $name is not offered here; the checks that use it will be skipped"
    else
      wanted+=("$name")
    fi
  done
  [ ${#wanted[@]} -gt 0 ] || return 0
  say "apt packages: installing ${#wanted[@]} (${wanted[*]})"
  quietly env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${wanted[@]}"
}

# The first Python of at least 3.11 that can make an environment; the distribution's own first, since apt gave it venv.
find_python() {
  local python
  for python in /usr/bin/python3 python3.12 python3.11 python3; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$python"; return; }
  done
  fail "no Python 3.11 or newer with the venv module; install python3-venv"
}

# Installs a requirements file once: a stamp holds the digest of the file that was installed.
install_requirements() {
  local file=$1 stamp
  stamp=.venv/.installed_$(basename "$file" .txt)
  if [ -f "$stamp" ] && sha256sum --status -c "$stamp" 2>/dev/null; then
    say "Python: $(basename "$file") installed"
    return
  fi
  [ "${THRICE_OFFLINE:-0}" = 0 ] || fail "$file is not installed in .venv, and THRICE_OFFLINE is set"
  say "Python: installing $(basename "$file")"
  quietly .venv/bin/python -m pip install -q --disable-pip-version-check -r "$file"
  sha256sum "$file" >"$stamp"
}

install_python() {
  if ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
    local python
    python=$(find_python)
    say "Python: new environment .venv from $($python --version)"
    rm -rf .venv
    quietly "$python" -m venv .venv
  fi
  install_requirements tools/requirements.txt
}

install_nvrtc() {
  local found
  if found=$(tools/find_nvrtc.sh 2>/dev/null); then
    say "NVRTC: $found"
    return
  fi
  install_requirements tools/requirements-nvrtc.txt
  say "NVRTC: $(tools/find_nvrtc.sh)"
}

# PP-OCRv4 as packed in one wheel: only the three models are taken out of it; the letters stand in the recognition
# model's own metadata under the key `character`.
install_models() {
  if (cd .models 2>/dev/null && sha256sum --status -c ../tools/ocr_models.sha256 2>/dev/null); then
    say "OCR models: present"
    return
  fi
  [ "${THRICE_OFFLINE:-0}" = 0 ] || fail "the OCR models are not in .models, and THRICE_OFFLINE is set"
  say "OCR models: downloading (15 MB)"
  rm -rf .models/download
  mkdir -p .models/download
  quietly .venv/bin/python -m pip download -q --disable-pip-version-check --no-deps --ignore-requires-python \
    -d .models/download rapidocr-onnxruntime==1.4.4
  quietly .venv/bin/python - .models/download .models <<'PYTHON'
import pathlib, sys, zipfile
source, target = map(pathlib.Path, sys.argv[1:])
wheel, = source.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.endswith(".onnx"):
            (target / pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))
PYTHON
  rm -rf .models/download
  (cd .models && sha256sum --quiet -c ../tools/ocr_models.sha256) ||
    fail "an OCR model in .models differs from tools/ocr_models.sha256; delete .models and run again, and if it stays, do not use it"
}

install_packages
if [ $demo = 1 ]; then
  install_python
  install_models
fi
[ $test = 0 ] || install_nvrtc
say "ready"
