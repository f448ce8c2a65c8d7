"""Results of a run: NumPy arrays over the library's memory, or arrays on the device."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Optional

import numpy as np

from ._errors import InvalidArgumentError
from ._inputs import LEGACY_STREAM, NUMPY_OF
from ._library import DTYPES, HOST, Tensor, check, library

_api = ctypes.pythonapi
_api.PyCapsule_IsValid.restype, _api.PyCapsule_IsValid.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api))
_DELETER_OFFSET = 56  # of DLManagedTensor: 48 bytes of DLTensor, then manager_ctx


def _delete_unused(capsule: int) -> None:
    # A consumer renames the capsule and deletes the tensor itself.
    if _api.PyCapsule_IsValid(capsule, b"dltensor"):
        tensor = _capsule_pointer(capsule, b"dltensor")
        deleter = ctypes.c_void_p.from_address(tensor + _DELETER_OFFSET).value
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(tensor)


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_destructor = _Destructor(_delete_unused)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ("PyCapsule_New", _api))


@functools.lru_cache(maxsize=None)
def numpy_dtype(name: str) -> np.dtype:
    """bf16 is ml_dtypes.bfloat16 where that is installed, else uint16 with the bits."""
    if name != "bf16":
        return np.dtype(NUMPY_OF[name])
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint16)
    return np.dtype(ml_dtypes.bfloat16)


class Result:
    """Owns one thrice_result."""

    def __init__(self, handle: int, session: Any, stream: Optional[int]):
        self.handle, self.session, self.stream = handle, session, stream
        self._free = library().thrice_result_free  # still there when the interpreter ends

    def __del__(self) -> None:
        self._free(self.handle)

    def outputs(self) -> list:
        return [self._output(i) for i in range(library().thrice_result_size(self.handle))]

    def _output(self, index: int) -> Any:
        tensor = Tensor()
        check(library().thrice_result_tensor(self.handle, index, ctypes.byref(tensor)))
        shape = tuple(tensor.shape[: tensor.rank])
        name = DTYPES[tensor.dtype]
        if tensor.memory != HOST:
            return DeviceArray(self, index, tensor.data or 0, shape, name)
        dtype = numpy_dtype(name)
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.asarray(_HostMemory(self, tensor.data, shape, dtype)).view(dtype)


class _HostMemory:
    """What NumPy keeps as the base of an array, and with it the result."""

    def __init__(self, result: Result, address: int, shape: tuple, dtype: np.dtype):
        self._result = result
        kind = dtype.str if dtype.kind in "fiub" else "<u2"  # bfloat16 has no type string of its own
        self.__array_interface__ = {"version": 3, "data": (address, False), "shape": shape, "typestr": kind}


class DeviceArray:
    """An output on the device, in memory of its own. torch.from_dlpack, cupy.asarray and others take it without a copy.

    It is written in the order of the stream of its run: read it there, or on another stream after `synchronize`.
    """

    def __init__(self, result: Result, index: int, address: int, shape: tuple, dtype: str):
        self._result, self._index, self._address = result, index, address
        self.shape: tuple = shape
        self.dtype: np.dtype = numpy_dtype(dtype)
        self._dtype = dtype

    @property
    def __cuda_array_interface__(self) -> dict:
        if self._dtype == "bf16":
            raise AttributeError("bfloat16 has no type string; use DLPack")
        self._need_cuda()
        stream = self._result.stream or LEGACY_STREAM
        return {"version": 3, "data": (self._address, False), "shape": self.shape, "typestr": self.dtype.str,
                "strides": None, "stream": stream}

    def __dlpack_device__(self) -> tuple:
        kind, index = self._result.session.device.split(":")
        return (2 if kind == "cuda" else 4, int(index))

    def __dlpack__(self, *, stream: Optional[int] = None, **_: Any) -> Any:
        # A consumer on another stream would have to wait for ours; the host waits for it.
        if stream != -1 and (stream or LEGACY_STREAM) != (self._result.stream or LEGACY_STREAM):
            self.synchronize()
        tensor = ctypes.c_void_p()
        check(library().thrice_result_dlpack(self._result.handle, self._index, ctypes.byref(tensor)))
        return _new_capsule(tensor.value, b"dltensor", _destructor)

    def synchronize(self) -> None:
        """Waits until this array is written."""
        result = self._result
        check(library().thrice_synchronize(result.session._handle, result.stream))

    def numpy(self) -> np.ndarray:
        """A copy on the host."""
        array = np.empty(self.shape, self.dtype)
        result = self._result
        check(library().thrice_read(result.session._handle, result.stream, result.handle, self._index,
                                    array.ctypes.data, array.nbytes))
        return array

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on the device is copied to the host")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def _need_cuda(self) -> None:
        if not self._result.session.device.startswith("cuda:"):
            raise AttributeError("not on a CUDA device")

    def __repr__(self) -> str:
        return f"thrice.DeviceArray(shape={self.shape}, dtype={self.dtype}, device={self._result.session.device})"


def to_torch(torch: Any, output: Any) -> Any:
    """An output as a torch tensor that shares its memory."""
    if isinstance(output, DeviceArray):
        return torch.from_dlpack(output)
    if output.dtype.name == "bfloat16":
        return torch.from_numpy(output.view(np.int16)).view(torch.bfloat16)
    if output.dtype.name in ("uint16", "uint32", "uint64") and not hasattr(torch, output.dtype.name):
        raise InvalidArgumentError(f"this torch has no {output.dtype.name}")
    return torch.from_numpy(output)
