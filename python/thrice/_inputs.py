"""The caller's arrays as thrice tensors, without a copy where they are dense.

NumPy arrays and whatever numpy.asarray takes lie on the host. CUDA tensors come from torch, through
`__cuda_array_interface__` (CuPy, Numba) or through DLPack.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Dict, NamedTuple, Optional

import numpy as np

from ._errors import InvalidArgumentError
from ._library import DEVICE, DTYPES, HOST, Tensor

_NUMPY = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16",
          "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
          "bool": "bool"}
NUMPY_OF = {short: name for name, short in _NUMPY.items()}
_NUMBER = {name: number for number, name in enumerate(DTYPES)}
_DL_CUDA, _DL_CUDA_MANAGED = 2, 13
LEGACY_STREAM = 1  # CUDA's name of its default stream where 0 means "none given"


class Input(NamedTuple):
    tensor: Tensor
    keeps: tuple  # what must live while the tensor is used
    device: Optional[int]  # index of the CUDA device; None on the host
    stream: Optional[int]  # the producer's stream where it says one
    is_torch: bool


def _tensor(address: int, shape: tuple, dtype: str, memory: int) -> tuple:
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    return Tensor(address or None, extents, len(shape), _NUMBER[dtype], memory, 0), extents


_SEEN: Dict[Any, str] = {}  # dtype objects of NumPy and torch: their names cost microseconds to build


def _dtype(dtype: Any, what: str) -> str:
    found = _SEEN.get(dtype)
    if found is None:
        name = getattr(dtype, "name", None) or str(dtype).replace("torch.", "")
        if name not in _NUMPY:
            raise InvalidArgumentError(f"{what} has dtype {name}; known: {', '.join(_NUMPY)}")
        found = _SEEN[dtype] = _NUMPY[name]
    return found


def torch_of(value: Any) -> Any:
    """The torch module where `value` is a tensor of it; None elsewhere. Never imports torch."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(value, torch.Tensor) else None


def _from_torch(torch: Any, value: Any, what: str) -> Input:
    value = value.detach()
    if value.layout != torch.strided or value.device.type not in ("cpu", "cuda"):
        raise InvalidArgumentError(f"{what} is a torch tensor of layout {value.layout} on {value.device}; "
                                   "dense tensors on cpu or cuda are taken")
    value = value.contiguous()
    dtype = _dtype(value.dtype, what)
    on_cuda = value.device.type == "cuda"
    tensor, extents = _tensor(value.data_ptr(), tuple(value.shape), dtype, DEVICE if on_cuda else HOST)
    return Input(tensor, (value, extents), value.device.index if on_cuda else None, None, True)


def _from_cuda_array(value: Any, device: int, what: str) -> Input:
    about = value.__cuda_array_interface__
    kind = np.dtype(about["typestr"])
    shape, strides = tuple(about["shape"]), about.get("strides")
    dense, step = [], kind.itemsize
    for extent in reversed(shape):
        dense.append(step)
        step *= extent
    if strides is not None and tuple(strides) != tuple(reversed(dense)) and 0 not in shape:
        raise InvalidArgumentError(f"{what} is not dense (strides {tuple(strides)}); copy it first")
    if about.get("mask") is not None:
        raise InvalidArgumentError(f"{what} has a mask")
    tensor, extents = _tensor(about["data"][0], shape, _dtype(kind, what), DEVICE)
    return Input(tensor, (value, extents), device, about.get("stream"), False)


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DL_CODES = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 8): "u8", (1, 16): "u16", (1, 32): "u32",
             (1, 64): "u64", (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (6, 8): "bool"}


def _from_dlpack(value: Any, device: int, stream: int, what: str) -> Input:
    capsule = value.__dlpack__(stream=stream)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # Not renamed to "used_dltensor": the capsule keeps the tensor and frees it when the run lets go of it.
    dl = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(dl.shape[i] for i in range(dl.ndim))
    dense = 1
    for axis in reversed(range(dl.ndim)):
        if dl.strides and shape[axis] > 1 and dl.strides[axis] != dense and 0 not in shape:
            raise InvalidArgumentError(f"{what} is not dense; copy it first")
        dense *= shape[axis]
    dtype = _DL_CODES.get((dl.code, dl.bits))
    if dtype is None or dl.lanes != 1:
        raise InvalidArgumentError(f"{what} has an element type that thrice does not know")
    tensor, extents = _tensor((dl.data or 0) + dl.byte_offset, shape, dtype, DEVICE)
    return Input(tensor, (value, capsule, extents), device, None, False)


def _from_host(value: Any, what: str) -> Input:
    array = np.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    shape = array.shape  # ascontiguousarray makes scalars one-dimensional
    array = np.ascontiguousarray(array)
    tensor, extents = _tensor(array.__array_interface__["data"][0], shape, _dtype(array.dtype, what), HOST)
    return Input(tensor, (array, extents), None, None, False)


def input_of(value: Any, what: str, device: Optional[int], stream: int) -> Input:
    """`device`: index of the session's CUDA device, None where it is none. `stream`: what a producer must wait for."""
    torch = torch_of(value)
    if torch is not None:
        found = _from_torch(torch, value, what)
    elif hasattr(value, "__cuda_array_interface__"):
        index = value.__dlpack_device__()[1] if hasattr(value, "__dlpack_device__") else (device or 0)
        found = _from_cuda_array(value, index, what)
    elif hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] in (_DL_CUDA, _DL_CUDA_MANAGED):
        found = _from_dlpack(value, value.__dlpack_device__()[1], stream, what)
    else:
        found = _from_host(value, what)
    if found.device is not None and found.device != device:
        here = "no CUDA device" if device is None else f"cuda:{device}"
        raise InvalidArgumentError(f"{what} is on cuda:{found.device}, the session is on {here}")
    return found
