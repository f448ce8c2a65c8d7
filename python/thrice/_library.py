"""libthrice.so by ctypes: found, checked, its functions declared (include/thrice/thrice.h says what each does)."""
from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import shutil
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

from ._errors import ThriceError, error_of

ABI_VERSION = 1
HOST, DEVICE = 0, 1
DTYPES = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")  # by number


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("shape", POINTER(c_int64)), ("rank", c_int32), ("dtype", c_int32),
                ("memory", c_int32), ("reserved", c_int32)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("shape", POINTER(c_int64)), ("expressions", POINTER(c_char_p)), ("rank", c_int32),
                ("dtype", c_int32)]


class LoadOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("device", c_char_p), ("no_build", c_int32)]


_STATUS = {  # functions that return a status
    "thrice_devices_json": [POINTER(c_void_p)],
    "thrice_load": [c_char_p, POINTER(LoadOptions), POINTER(c_void_p)],
    "thrice_input_info": [c_void_p, c_size_t, POINTER(TensorInfo)],
    "thrice_output_info": [c_void_p, c_size_t, POINTER(TensorInfo)],
    "thrice_manifest_json": [c_void_p, POINTER(c_void_p)],
    "thrice_run": [c_void_p, POINTER(Tensor), c_size_t, POINTER(c_void_p)],
    "thrice_run_async": [c_void_p, c_void_p, POINTER(Tensor), c_size_t, POINTER(c_void_p)],
    "thrice_synchronize": [c_void_p, c_void_p],
    "thrice_forget_stream": [c_void_p, c_void_p],
    "thrice_result_tensor": [c_void_p, c_size_t, POINTER(Tensor)],
    "thrice_result_dlpack": [c_void_p, c_size_t, POINTER(c_void_p)],
    "thrice_read": [c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t],
    "thrice_swap": [c_void_p, c_char_p],
}
_OTHER = {
    "thrice_abi_version": (c_uint32, []),
    "thrice_version": (c_char_p, []),
    "thrice_message": (c_char_p, []),
    "thrice_status_name": (c_char_p, [c_int32]),
    "thrice_num_inputs": (c_size_t, [c_void_p]),
    "thrice_num_outputs": (c_size_t, [c_void_p]),
    "thrice_device_id": (c_char_p, [c_void_p]),
    "thrice_device_name": (c_char_p, [c_void_p]),
    "thrice_result_size": (c_size_t, [c_void_p]),
    "thrice_free": (None, [c_void_p]),
    "thrice_session_free": (None, [c_void_p]),
    "thrice_result_free": (None, [c_void_p]),
}


def _candidates() -> list[str]:
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("THRICE_LIBRARY")
    return [named] if named else [str(here / "libthrice.so"), "libthrice.so.1"]


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The loaded library. Looked for: $THRICE_LIBRARY; beside this package; where the loader looks."""
    tried = []
    for path in _candidates():
        try:
            lib = ctypes.CDLL(path)
            break
        except OSError as e:
            tried.append(f"{path} ({e})")
    else:
        raise ThriceError("libthrice.so cannot be loaded; set THRICE_LIBRARY to its path. Tried: " + "; ".join(tried),
                          "NotFound")
    for name, arguments in _STATUS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = c_int32, arguments
    for name, (result, arguments) in _OTHER.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    found = lib.thrice_abi_version()
    if found != ABI_VERSION:
        raise ThriceError(f"{path} has interface version {found}, this package needs {ABI_VERSION}", "Unsupported")
    return lib


def check(status: int) -> None:
    """Raises what the library's last call on this thread said."""
    if status != 0:
        lib = library()
        raise error_of(lib.thrice_message().decode("utf-8", "replace"), lib.thrice_status_name(status).decode())


def take_text(function: Any, *arguments: Any) -> str:
    """Calls a function whose last argument receives text that thrice_free frees."""
    text = c_void_p()
    check(function(*arguments, ctypes.byref(text)))
    try:
        return ctypes.string_at(text.value).decode("utf-8", "replace")
    finally:
        library().thrice_free(text)


def find_executable() -> str:
    """Path of `thrice`: $THRICE_EXECUTABLE; beside this package; on PATH."""
    named = os.environ.get("THRICE_EXECUTABLE")
    beside = pathlib.Path(__file__).resolve().parent / "bin" / "thrice"
    found = named or (str(beside) if beside.is_file() else shutil.which("thrice"))
    if not found or not os.path.isfile(found):
        raise ThriceError(f"the executable `thrice` is not {'at ' + named if named else 'on PATH'}; "
                          "set THRICE_EXECUTABLE to its path", "NotFound")
    if not os.access(found, os.X_OK) and found == str(beside):
        os.chmod(found, 0o755)  # installers that unpack wheels by themselves may drop the mode
    return found
