#!/usr/bin/env bash
# Builds one archive that runs on any x86-64 Linux with glibc 2.35 or newer: executable, library, headers, wheel, examples, the
# programs that test and measure on a GPU, licence and third-party notices. Nothing in it needs a C++ runtime, CUDA or OpenCL to start.
#   tools/package.sh                       builds the preset `portable` and packs build/portable/thrice-VERSION-linux-x86_64.tar.gz
#   tools/package.sh --build build/release packs what an existing build folder holds, without building; tests only of a portable one
#   tools/package.sh --output FOLDER       where the archive goes (default: the build folder)
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/portable make=1 output=''
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=${2:?--build needs a folder} make=0; shift ;;
    --output) output=${2:?--output needs a folder}; shift ;;
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "package: unknown option $1; known: --build --output" >&2; exit 2 ;;
  esac
  shift
done
output=${output:-$build}
version=$(sed -nE 's/^project\(thrice VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
name=thrice-$version-linux-x86_64
# Conformance, every kernel family against the interpreter, and all that is marked as a test of a card.
tests=(run_node_tests test_cross_oclgrind test_cross_heavy test_cross_families test_fault_cheats)
if [ $make = 1 ]; then
  cmake --preset portable >/dev/null
  mapfile -t -O ${#tests[@]} tests < <(ninja -C "$build" -t targets all | sed -nE 's/^(test_gpu_[a-z0-9_]+): .*EXECUTABLE.*/\1/p')
  cmake --build "$build" -j "${THRICE_JOBS:-$(nproc)}" --target thrice thrice_shared "${tests[@]}"
elif ! grep -q '^THRICE_PORTABLE:BOOL=ON' "$build/CMakeCache.txt"; then
  tests=()  # of an ordinary build: linked to the shared C++ runtime
else
  mapfile -t -O ${#tests[@]} tests < <(cd "$build" && find . -maxdepth 1 -type f -name 'test_gpu_*' -executable -printf '%f\n' | sort)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/$name
mkdir -p "$root"/{bin,lib,include,python,tests,examples,docs} "$output"
strip --strip-unneeded -o "$root/bin/thrice" "$build/thrice"
strip --strip-unneeded -o "$root/lib/libthrice.so.1" "$build/libthrice.so.1"
ln -s libthrice.so.1 "$root/lib/libthrice.so"
mkdir "$root/include/thrice"
cp include/thrice/{thrice,session,dtype,status}.h "$root/include/thrice/"
cp examples/* "$root/examples/"
cp LICENSE THIRD_PARTY_NOTICES.md README.md "$root/"
cp docs/*.md "$root/docs/"
for test in ${tests[@]+"${tests[@]}"}; do
  if [ -x "$build/$test" ]; then strip --strip-unneeded -o "$root/tests/$test" "$build/$test"
  elif [ $make = 1 ]; then echo "package: $build/$test is missing" >&2; exit 1; fi
done
# What a machine with a card needs to test the package and to measure (with torch): python3 -m pip install python/*.whl first.
mkdir "$root/tests/python" "$root/bench" "$root/tools"
cp tests/python/{small_model,test_session,test_cuda}.py "$root/tests/python/"
cp bench/*.py "$root/bench/"
cp tools/{export_zoo,strip_model}.py "$root/tools/"
python3 tools/build_wheel.py "$build" --output "$root/python" >/dev/null
python3 tools/check_portable.py "$root"/bin/* "$root"/lib/libthrice.so.1 $(find "$root/tests" -maxdepth 1 -type f)
# Equal contents give equal bytes: fixed order, owner and time.
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name" | gzip -9n >"$output/$name.tar.gz"
echo "$output/$name.tar.gz"
