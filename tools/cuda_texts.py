#!/usr/bin/env python3
"""Builds every CUDA text that the kernel tests kept to a cubin with NVRTC, for each architecture that thrice knows.

    tools/cuda_texts.py BUILD_DIR [--jobs 2] [--every]

Texts lie in BUILD_DIR/cuda_texts/DIGEST.cu (tests/cross/cuda_text.h; run the step cross first).
To bound the time, of the texts of one tactic eight, spread over their sizes, build for all nine architectures, the others for sm_80 and
sm_90a; --every builds all for all (7 minutes on two cores instead of 4).
What was built is remembered by digest of text, prelude, options and compiler, so that a second run builds only what changed.
The last line is `N passed, N failed`; a text that fails for several architectures counts once for each.
"""
import argparse
import collections
import ctypes
import hashlib
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALL = ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a"]
FEW = ["sm_80", "sm_90a"]
SPREAD = 8  # texts of one tactic that build for all


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def log(self, text, architecture, options):
        """None when the text builds; else the head of the compiler's log."""
        program = ctypes.c_void_p()
        if self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) != 0:
            return "nvrtcCreateProgram failed"
        arguments = [f"--gpu-architecture={architecture}".encode()] + [option.encode() for option in options]
        code = self.library.nvrtcCompileProgram(program, len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        size = ctypes.c_size_t()
        result = None
        if code != 0:
            self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            buffer = ctypes.create_string_buffer(size.value + 1)
            self.library.nvrtcGetProgramLog(program, buffer)
            result = f"NVRTC error {code}: {buffer.value.decode(errors='replace')[:1500]}"
        else:
            self.library.nvrtcGetCUBINSize(program, ctypes.byref(size))
            if size.value == 0:
                result = "NVRTC gave no cubin"
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return result


nvrtc = None


def start_worker(path):
    global nvrtc
    nvrtc = Nvrtc(path)


def build(job):
    label, text, architecture, options, digest = job
    return label, architecture, digest, nvrtc.log(text, architecture, options)


def tactic_of(path):
    """`matmul/tiled` of a first line `// matmul/tiled tile_m=64 ...`."""
    words = path.read_text().split("\n", 1)[0].split()
    return words[1] if len(words) > 1 else "?"


def architectures_of(folder, every):
    """{path: architectures} of all texts."""
    wanted, tactics = {}, collections.defaultdict(list)
    for path in sorted(folder.glob("*.cu")):
        tactics[tactic_of(path)].append(path)
    for paths in tactics.values():
        paths.sort(key=lambda path: (path.stat().st_size, path.name))
        spread = {round(i * (len(paths) - 1) / (SPREAD - 1)) for i in range(SPREAD)}
        for i, path in enumerate(paths):
            wanted[path] = ALL if every or i in spread else FEW
    return wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--every", action="store_true")
    args = parser.parse_args()
    folder = args.build / "cuda_texts"
    found = subprocess.run([ROOT / "tools" / "find_nvrtc.sh"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print(f"skipped: {found.stderr.strip()}\n0 passed, 0 failed")
        return 0
    wanted = architectures_of(folder, args.every)
    if not wanted:
        print(f"no CUDA texts in {folder}: run the tests of tests/cross first (tools/test.sh --only cross,cuda_texts)\n0 passed, 1 failed")
        return 1
    library = found.stdout.strip()
    prelude, options = (folder / "prelude.cuh").read_text(), (folder / "options.txt").read_text().split()
    version = Nvrtc(library).version
    memory = folder / "built.txt"
    known = set(memory.read_text().split()) if memory.is_file() else set()
    jobs, remembered = [], 0
    for path, architectures in wanted.items():
        text = path.read_text()
        for architecture in architectures:
            digest = hashlib.sha256("\0".join([prelude, text, architecture, *options, version]).encode()).hexdigest()
            if digest in known:
                remembered += 1
            else:
                jobs.append((f"{path.name} ({text.splitlines()[0][3:]})", prelude + text, architecture, options, digest))
    begin, failures, built = time.monotonic(), collections.defaultdict(list), 0
    with multiprocessing.Pool(args.jobs, start_worker, (library,)) as pool, memory.open("a") as record:
        for label, architecture, digest, log in pool.imap_unordered(build, jobs, chunksize=4):
            if log is None:
                built += 1
                record.write(digest + "\n")
            else:
                failures[(label, log)].append(architecture)
    for (label, log), architectures in failures.items():
        print(f"FAILED {label} for {', '.join(architectures)}:\n{log}")
    failed = len(jobs) - built
    print(f"NVRTC {version}: {len(wanted)} texts of {len({tactic_of(path) for path in wanted})} tactics, "
          f"{sum(architectures is ALL for architectures in wanted.values())} for all {len(ALL)} architectures; {built} cubins built in "
          f"{time.monotonic() - begin:.0f} s, {remembered} known from before")
    print(f"{built + remembered} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
