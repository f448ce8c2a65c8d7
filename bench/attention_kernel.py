#!/usr/bin/env python3
"""Times the kernel of kernels/cuda/attention_wgmma.cuh alone beside PyTorch's back ends, variant by variant, in one process.

    bench/attention_kernel.py [--shapes 4x16x2048x128,...] [--variants 128x128x2x1,...] [--output FILE]

The text is expanded here as family/template.cc and attention_wgmma.cc do it (bf16, scores times 1/sqrt(d), with and without a mask of
later keys; tests/cross/heavy/attention_test.cc keeps the product's text to compare), built by nvcc for sm_90a and launched through the driver; so a variant takes
seconds to try. A variant is queries a block x keys a tile x stages x turns. Answers are compared with float32 products and softmax
of PyTorch (TF32 off). Needs torch, nvcc and a card of sm_90a. bench/attention.py times the product.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import datetime
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / "kernels" / "cuda"
SHARED_BYTES = 227 * 1024


class Text:
    """Sections of a kernel text with names and holes, as in src/family/template.cc."""

    def __init__(self, name: str):
        self.sections, self.names, self.holes, section = {}, {}, {}, None
        for line in map(str.strip, (KERNELS / name).read_text().splitlines()):
            if line.startswith("//@@ "):
                section = self.sections.setdefault(line[5:], [])
            elif section is not None and line and (not line.startswith("//") or line.startswith("//@")):
                section.append(line)

    def write(self, section: str) -> str:
        out = []
        for line in self.sections[section]:
            if line.startswith("//@"):
                hole = self.holes[line[3:]]
                out.append(hole() if callable(hole) else hole)
            else:
                out.append(re.sub(r"\$(\w+)", lambda m: str(self.names[m.group(1)]), line))
        return "\n".join(out)


def instruction(n: int, a_in_registers: bool) -> str:
    """th_wgmma or th_wgmma_values with its `done`: 64 x n sums over 16 of the depth, bf16."""
    sums = n // 2
    held, bound = ",".join(f"%{i}" for i in range(sums)), ", ".join(f'"+f"(d[{i}])' for i in range(sums))
    name, done = ("th_wgmma_values", "th_values_done") if a_in_registers else ("th_wgmma", "th_wgmma_done")
    first = "const th_u32* a" if a_in_registers else "th_u64 a"
    a = "{" + ", ".join(f"%{sums + i}" for i in range(4)) + "}" if a_in_registers else f"%{sums}"
    b = sums + (4 if a_in_registers else 1)
    given = '"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3])' if a_in_registers else '"l"(a)'
    return (f"TH_FN void {name}(float* d, {first}, th_u64 b, int keep) {{\n"
            f'asm volatile("{{.reg .pred keeps; setp.ne.b32 keeps, %{b + 1}, 0;\\n\\t"\n'
            f'"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{held}}}, {a}, %{b}, keeps, 1, 1, {"1" if a_in_registers else "0, 0"};}}"\n'
            f': {bound} : {given}, "l"(b), "r"(keep));\n}}\n'
            f'TH_FN void {done}(float* d) {{ asm volatile("" : {bound} :: "memory"); }}\n')


class Variant:
    def __init__(self, shape: tuple, causal: bool, values: tuple):
        (self.b, self.h, self.s, self.d), self.causal, (self.bm, self.bn, self.slots, self.turns) = shape, causal, values
        self.groups = self.bm // 64
        self.name = f"tile_m={self.bm} tile_n={self.bn} stages={self.slots} turns={self.turns}"
        end = self.bm * self.d * 2 + self.slots * self.bn * self.d * 4
        self.ring_v = self.bm * self.d * 2 + self.slots * self.bn * self.d * 2
        self.own_room = 1024 + end + self.bm * self.d * 2 + 16 + 32 * self.slots <= SHARED_BYTES
        self.staging, self.barriers = (end, end + self.bm * self.d * 2) if self.own_room else (0, end)
        self.bytes, self.threads = 1024 + self.barriers + 16 + 32 * self.slots, 128 * (self.groups + 1)

    def text(self) -> str:
        t, copies, packed = Text("attention_wgmma.cuh"), Text("gemm_wgmma16.cuh"), Text("gemm_wgmma.cuh")
        copies.names["PAIR"] = "bf16x2"
        guards = self.s % self.bn != 0
        t.names.update(
            CONSUMERS=self.groups, SLOTS=self.slots, BN=self.bn, BM=self.bm, DEPTH=self.d, WIDTH=self.d, TILES_M=-(-self.s // self.bm),
            BATCHES=self.b * self.h, M=self.s, N=self.s, HEADS=max(1, (24 << 20) // (4 * self.s * self.d)), SHIFT=0,
            RING_K=self.bm * self.d * 2, RING_V=self.ring_v, SLOT_K=self.bn * self.d * 2, SLOT_V=self.bn * self.d * 2, BARRIERS=self.barriers,
            STAGING=self.staging, STAGING_ROLE=128 * self.d if self.own_room else 8192, STAGING_PANEL=8192 if self.own_room else self.bm * 128,
            Q_LINE="z", K_LINE="z", V_LINE="z", SCALE=f"{self.d ** -0.5 * math.log2(math.e):.8e}f", SHARE="1.0f / all", ELEMENT="own[0] * own[1]",
            SEEN=f"n <= m && n < {self.s}" if self.causal else f"n < {self.s}", **{f"SCALED_{i}": f"own[{i}] * share_of[{i // 2}]" for i in range(4)})
        masked = [False]

        def step(value: bool) -> str:
            masked[0] = value
            return t.write("step")

        def written(condition: bool, text: str) -> str:
            return text if condition else ""

        few, many = {1: (0, 0), 2: (24, 240), 3: (32, 160)}[self.groups]
        sync = 'asm volatile("bar.%s %%0, 256;" :: "r"(%s) : "memory");'
        t.holes = {
            "tile": lambda: t.write("tile_causal" if self.causal else "tile_in_order"), "masked_step": lambda: step(True), "whole_step": lambda: step(False),
            "logits": lambda: written(masked[0], t.write("guarded")), "first_logits": lambda: written(self.causal or guards, t.write("guarded")),
            "steps": lambda: t.write("causal_steps" if self.causal else "all_steps"), "store": lambda: t.write("store_plain"),
            "fewer_registers": written(few, f'asm volatile("setmaxnreg.dec.sync.aligned.u32 {few};");'),
            "more_registers": written(many, f'asm volatile("setmaxnreg.inc.sync.aligned.u32 {many};");'),
            "turn": written(self.turns, sync % ("sync", "4 + role")), "next_turn": written(self.turns, sync % ("arrive", f"4 + (role + 1) % {self.groups}")),
            "first_turn": written(self.turns, f"if (role == {self.groups - 1}) " + sync % ("arrive", "4")),
            "last_turn": written(self.turns, "if (role == 0) " + sync % ("sync", "4")),
            "q_is_read": written(self.own_room, "if (lane == 0) th_barrier_arrive(q_empty);"),
            "unread": written(self.own_room, 'if (TH_THREAD % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");'),
            "give_back_q": lambda: written(not self.own_room, t.write("in_room_of_q")), "plain_loops": "",
            "stored": 'if (TH_THREAD % 128 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");',
            **{name: (lambda name=name: t.write(name)) for name in ("scores", "values", "powers", "pack")}}
        return "\n".join([(KERNELS / "prelude.cuh").read_text(), packed.write("functions"), copies.write("functions"), t.write("functions"),
                          instruction(self.bn, False), instruction(self.d, True),
                          f"TH_KERNEL_ALONE({self.threads}) attention(TH_MAP map_q, TH_MAP map_k, TH_MAP map_v, TH_MAP map_y) {{", t.write("body"), "}\n"])

    def build(self, folder: pathlib.Path) -> str:
        """What ptxas says of registers; self.cubin is the file."""
        stem = folder / re.sub(r"\W", "_", f"{self.b}_{self.h}_{self.s}_{self.d}_{self.causal}_{self.name}")
        stem.with_suffix(".cu").write_text(self.text())
        self.cubin = stem.with_suffix(".cubin")
        told = subprocess.run(["nvcc", "-gencode=arch=compute_90a,code=sm_90a", "-cubin", "-Xptxas", "-v", "-o", self.cubin, stem.with_suffix(".cu")],
                              capture_output=True, text=True, check=True).stderr
        return " ".join(re.findall(r"\d+ bytes spill stores|serialized|Used \d+ registers", told))


def checked(code: int, what: str) -> None:
    if code != 0:
        raise RuntimeError(f"{what}: CUDA driver error {code}")


def tensor_map(driver, tensor, extents: tuple, box: tuple):
    held = ctypes.create_string_buffer(192)
    at = (ctypes.addressof(held) + 63) // 64 * 64
    checked(driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(at), 9, 3, ctypes.c_void_p(tensor.data_ptr()), (ctypes.c_uint64 * 3)(*extents),
        (ctypes.c_uint64 * 2)(2 * extents[0], 2 * extents[0] * extents[1]), (ctypes.c_uint32 * 3)(*box), (ctypes.c_uint32 * 3)(1, 1, 1), 0, 3, 2, 0), "tensor map")
    return held, at


def launcher(torch, driver, v: Variant, q, k, values, y):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    checked(driver.cuModuleLoad(ctypes.byref(module), str(v.cubin).encode()), "load")
    checked(driver.cuModuleGetFunction(ctypes.byref(function), module, b"attention"), "function")
    checked(driver.cuFuncSetAttribute(function, 8, v.bytes), "shared memory")
    extents = (v.d, v.s, v.b * v.h)
    maps = [tensor_map(driver, q, extents, (64, v.bm, 1)), tensor_map(driver, k, extents, (64, v.bn, 1)), tensor_map(driver, values, extents, (64, v.bn, 1)),
            tensor_map(driver, y, extents, (64, 64, 1))]
    arguments = (ctypes.c_void_p * 4)(*[at for _, at in maps])
    grid = min(torch.cuda.get_device_properties(0).multi_processor_count, -(-v.s // v.bm) * v.b * v.h)

    def launch():
        checked(driver.cuLaunchKernel(function, grid, 1, 1, v.threads, 1, 1, v.bytes, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), arguments, None), "launch")

    launch.holds = maps
    return launch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="8x16x512x64,4x16x2048x128,1x16x8192x128", help="batch x heads x length x width")
    parser.add_argument("--variants", default="", help="tile_m x tile_n x stages x turns; the rule's and its neighbours without")
    parser.add_argument("--output", type=pathlib.Path, help="results file; the fastest variant of a case counts")
    parser.add_argument("--texts", type=pathlib.Path, help="build the texts there, and end; needs no card")
    arguments = parser.parse_args()
    variants = []
    for shape in [tuple(map(int, text.split("x"))) for text in arguments.shapes.split(",")]:
        chosen = [tuple(map(int, text.split("x"))) for text in arguments.variants.split(",")] if arguments.variants else \
            [(128, 128, 3 if shape[3] == 64 else 2, turns) for turns in (0, 1)] + [(128, 160, 2, 1), (128, 112, 2, 1)]
        variants += [v for causal in (False, True) for values in chosen if (v := Variant(shape, causal, values)).bytes <= SHARED_BYTES]
    folder = arguments.texts or pathlib.Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2 if arguments.texts else None) as pool:
        for v, told in zip(variants, pool.map(lambda v: v.build(folder), variants)):
            print(f"{v.b}x{v.h}x{v.s}x{v.d}{' causal' if v.causal else ''} {v.name}: {told}", flush=True)
    if arguments.texts:
        return 0
    sys.path.insert(0, str(ROOT / "bench"))
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from attention import BACK_ENDS, block_us, copy_gbs, error, exact

    torch.zeros(1, device="cuda")
    driver = ctypes.CDLL("libcuda.so.1")
    date = datetime.datetime.now(datetime.timezone.utc)
    run = {"id": f"attention_kernel_{date:%Y-%m-%d_%H%M}", "date": f"{date:%Y-%m-%dT%H:%M:%SZ}", "command": "bench/attention_kernel.py",
           "environment": {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__}, "anchor": {"copy_gbs": round(copy_gbs(torch))}}
    rows, wrong = [], 0
    for key in dict.fromkeys((v.b, v.h, v.s, v.d, v.causal) for v in variants):
        *shape, causal = key
        torch.manual_seed(1)
        q, k, values = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        reference, calls, errors = exact(torch, q, k, values, causal), {}, {}

        def rival(back_end):
            with sdpa_kernel(back_end):
                return torch.nn.functional.scaled_dot_product_attention(q, k, values, is_causal=causal)

        for name in ("torch_cudnn", "torch_flash"):
            calls[name] = lambda back_end=getattr(SDPBackend, BACK_ENDS[name]): rival(back_end)
            errors[name] = error(calls[name](), reference)
        for v in variants:
            if (v.b, v.h, v.s, v.d, v.causal) == key:
                y = torch.full(shape, math.nan, device="cuda", dtype=torch.bfloat16)
                calls[v.name] = launcher(torch, driver, v, q, k, values, y)
                calls[v.name]()
                torch.cuda.synchronize()
                errors[v.name] = error(y, reference)
                calls[v.name].y = y
                wrong += not errors[v.name] <= 1e-2
        counts = {name: max(5, int(3000 / min(block_us(torch, call, 3) for _ in range(2)))) for name, call in calls.items()}
        samples: dict = {name: [] for name in calls}
        for _ in range(7):
            for name, call in calls.items():
                samples[name].append(block_us(torch, call, counts[name]))
        middle = {name: statistics.median(us) for name, us in samples.items()}
        rivals = {name: us for name, us in middle.items() if name.startswith("torch_")}
        flop = 4.0 * shape[0] * shape[1] * shape[2] ** 2 * shape[3] * (0.5 if causal else 1)
        for name, us in middle.items():
            print(f"{key} {name}: {us:.1f} us, {flop / us * 1e-6:.0f} TFLOPS, {min(rivals.values()) / us:.2f}x, error {errors[name]:.2e}", flush=True)
        best = min((name for name in middle if name not in rivals), key=middle.get)
        rows.append({"run": run["id"], "suite": "attention_bf16", "name": "attention_bf16_" + "x".join(map(str, shape)) + ("_causal" if causal else ""), "family": "attention",
                     "shape": "x".join(map(str, shape)), "dtype": "bf16", "numerics": "float32 sums and softmax", "thrice_own_us": middle[best], "samples": 7,
                     "rivals": rivals, "error": errors[best], "error_limit": 1e-2, "rivals_error": {name: errors[name] for name in rivals},
                     "sol_us": flop / 989e6, "sol_bound": "compute", "tactic": "wgmma", "schedule": best, "note": "the kernel alone, not through the product; both sides without waiting"})
        if arguments.output:
            arguments.output.write_text(json.dumps({"schema": 1, "runs": [run], "cases": rows}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
