"""Errors: the library's status and message, as exceptions."""
from __future__ import annotations


class ThriceError(RuntimeError):
    """What the library or the executable refused. `status` is its name: "NotFound", "Corrupt", "OutOfMemory", ..."""

    def __init__(self, message: str, status: str = "Internal"):
        super().__init__(message)
        self.status = status


class InvalidArgumentError(ThriceError, ValueError):
    """A name, shape, dtype or option of the caller's."""

    def __init__(self, message: str):
        super().__init__(message, "InvalidArgument")


def error_of(message: str, status: str) -> ThriceError:
    return InvalidArgumentError(message) if status == "InvalidArgument" else ThriceError(message, status)
