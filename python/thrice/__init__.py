"""thrice: verified, tuned releases of ONNX models.

    report = thrice.optimize("model.onnx", "model.thrice", budget="2m", dims={"batch": 1})
    session = thrice.load("model.thrice")
    (y,) = session.run(x)                     # NumPy in, NumPy out; CUDA tensors in, CUDA tensors out
    answers = session.run({"x": x})           # by name
    session.swap("better.thrice")             # while other threads run
"""
from __future__ import annotations

import json as _json
from typing import Any, Dict, List

from ._errors import InvalidArgumentError, ThriceError
from ._library import library as _loaded, take_text as _take_text
from ._optimize import optimize
from ._outputs import DeviceArray
from .session import Port, Session, load

__all__ = ["DeviceArray", "InvalidArgumentError", "Port", "Session", "ThriceError", "backends", "devices", "load",
           "optimize", "version"]


def backends() -> List[Dict[str, Any]]:
    """Every back end: name, available, reason (what is missing and how to mend it), devices."""
    return _json.loads(_take_text(_loaded().thrice_devices_json))["backends"]


def devices() -> List[Dict[str, Any]]:
    """Every device that can be named to load() and optimize(): id, name, limits; the best first."""
    return [device for backend in backends() for device in backend["devices"]]


def version() -> str:
    """Version of the loaded library."""
    return _loaded().thrice_version().decode()
