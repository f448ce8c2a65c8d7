"""A loaded release that answers."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from ._errors import InvalidArgumentError
from ._inputs import LEGACY_STREAM, Input, input_of, torch_of
from ._library import DTYPES, LoadOptions, Tensor, TensorInfo, check, library, take_text
from ._outputs import Result, numpy_dtype, to_torch

Path = Union[str, "os.PathLike[str]"]


class Port(NamedTuple):
    """One input or output of a model."""

    name: str
    dtype: np.dtype
    shape: Tuple[Union[int, str], ...]
    """Extents; a symbolic one is its expression: "width", "floordiv(width,4)"."""


class Session:
    """One release on one device. Any number of threads may run it at one time; each run has memory of its own."""

    def __init__(self, path: Path, device: Optional[str] = None, *, allow_build: bool = True):
        options = LoadOptions(ctypes.sizeof(LoadOptions), (device or "").encode(), 0 if allow_build else 1)
        handle = ctypes.c_void_p()
        check(library().thrice_load(os.fsencode(path), ctypes.byref(options), ctypes.byref(handle)))
        self._handle: Optional[int] = handle.value
        self._free = library().thrice_session_free  # still there when the interpreter ends
        self.device: str = library().thrice_device_id(self._handle).decode()
        self.device_name: str = library().thrice_device_name(self._handle).decode("utf-8", "replace")
        self.inputs: List[Port] = self._ports(library().thrice_num_inputs, library().thrice_input_info)
        self.outputs: List[Port] = self._ports(library().thrice_num_outputs, library().thrice_output_info)
        kind, _, index = self.device.partition(":")
        self._cuda: Optional[int] = int(index) if kind == "cuda" else None

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._free(self._handle)

    def run(self, *inputs: Any, stream: Optional[int] = None) -> Any:
        """Runs once. Inputs: one mapping of names to arrays, or arrays in the order of `inputs`.

        The answer has the form of the question: a dict by output name, or a tuple in the order of `outputs`.

        Arrays on the host (NumPy, or what numpy.asarray takes) give NumPy arrays, and the call waits. As soon as one
        input is a CUDA tensor (torch, `__cuda_array_interface__`, DLPack), the run is enqueued on torch's current
        stream where the inputs are torch tensors, else on `stream` (a CUstream as a number; default: the producer's,
        or CUDA's default stream), and all outputs lie on the device: torch tensors when an input was one, else
        thrice.DeviceArray. Dense inputs are not copied: leave them unchanged until the stream has passed the run.

        Raises InvalidArgumentError (a wrong name, dtype or shape; says what is expected) and ThriceError.
        """
        by_name = len(inputs) == 1 and isinstance(inputs[0], Mapping)
        values = self._in_order(inputs[0]) if by_name else list(inputs)
        torch = next((t for t in map(torch_of, values) if t is not None), None)
        if stream is None and torch is not None and self._cuda is not None:
            stream = torch.cuda.current_stream(self._cuda).cuda_stream if torch.cuda.is_initialized() else None
        given: List[Input] = []
        for i, value in enumerate(values):
            what = f"input '{self.inputs[i].name}'" if i < len(self.inputs) else f"input {i}"
            given.append(input_of(value, what, self._cuda, stream or LEGACY_STREAM))
        outputs = self._run(given, stream)
        if torch is not None:
            outputs = [to_torch(torch, output) for output in outputs]
        if by_name:
            return {port.name: output for port, output in zip(self.outputs, outputs)}
        return tuple(outputs)

    __call__ = run

    def swap(self, path: Path) -> None:
        """Puts another release of the same inputs and outputs in the place of this one while other threads run.

        Runs under way end on the old one; none fails. On an error the present release stays in service.
        """
        check(library().thrice_swap(self._handle, os.fsencode(path)))

    def synchronize(self, stream: Optional[int] = None) -> None:
        """Waits for this session's runs on a stream."""
        check(library().thrice_synchronize(self._handle, stream))

    def forget_stream(self, stream: int) -> None:
        """Frees what is kept for a stream; call it before the stream is destroyed."""
        check(library().thrice_forget_stream(self._handle, stream))

    @property
    def manifest(self) -> Dict[str, Any]:
        """What the release in service says of itself: device, proof, times (docs/release_format.md)."""
        return json.loads(take_text(library().thrice_manifest_json, self._handle))

    def __repr__(self) -> str:
        def text(ports: List[Port]) -> str:
            return ", ".join(f"{p.name} {p.dtype}[{', '.join(map(str, p.shape))}]" for p in ports)

        return f"thrice.Session({text(self.inputs)} -> {text(self.outputs)}, {self.device})"

    def _run(self, given: List[Input], stream: Optional[int]) -> list:
        tensors = (Tensor * max(len(given), 1))(*[g.tensor for g in given])
        handle = ctypes.c_void_p()
        if all(g.device is None for g in given):
            check(library().thrice_run(self._handle, tensors, len(given), ctypes.byref(handle)))
            return Result(handle.value, self, None).outputs()
        if stream is None:
            stream = next((g.stream for g in given if g.stream), None)
        check(library().thrice_run_async(self._handle, stream, tensors, len(given), ctypes.byref(handle)))
        return Result(handle.value, self, stream).outputs()

    def _in_order(self, named: Mapping) -> list:
        names = [port.name for port in self.inputs]
        for name in named:
            if name not in names:
                raise InvalidArgumentError(f"the model has no input '{name}'; it takes: {', '.join(names)}")
        missing = [name for name in names if name not in named]
        if missing:
            raise InvalidArgumentError(f"input '{missing[0]}' is missing; the model takes: {', '.join(names)}")
        return [named[name] for name in names]

    def _ports(self, count: Any, describe: Any) -> List[Port]:
        ports = []
        for i in range(count(self._handle)):
            info = TensorInfo()
            check(describe(self._handle, i, ctypes.byref(info)))
            shape = tuple(info.shape[a] if info.shape[a] >= 0 else info.expressions[a].decode() for a in range(info.rank))
            ports.append(Port(info.name.decode("utf-8", "replace"), numpy_dtype(DTYPES[info.dtype]), shape))
        return ports


def load(path: Path, device: Optional[str] = None, *, allow_build: bool = True) -> Session:
    """Loads a release made by `thrice optimize`.

    device: "cuda:0", "opencl:0", ...; default: the best found. allow_build: False refuses a release that holds no
    binaries for the device; True lets the device's own compiler build the kernel text in it.

    A release is code: load only what you trust. Raises ThriceError: NotFound, Corrupt, Unsupported, OutOfMemory.
    """
    return Session(path, device, allow_build=allow_build)
