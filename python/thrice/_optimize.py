"""Optimising: starts the executable, follows its progress, returns its report."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

from ._errors import error_of
from ._library import find_executable

Path = Union[str, "os.PathLike[str]"]
_STATUS_OF_EXIT = {2: "InvalidArgument", 3: "InvalidModel", 4: "Unsupported", 5: "NotFound", 6: "Io", 7: "Corrupt",
                   8: "OutOfMemory", 9: "CompileFailed", 10: "LaunchFailed", 11: "TimedOut", 12: "WrongResult",
                   130: "Cancelled"}


def _flags(options: Mapping[str, Any]) -> List[str]:
    flags: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif isinstance(value, Mapping):
            flags.append(f"{flag}=" + ",".join(f"{key}={one}" for key, one in value.items()))
        elif isinstance(value, (list, tuple)):
            flags += [f"{flag}={one}" for one in value]
        elif value is not None and value is not False:
            flags.append(f"{flag}={value}")
    return flags


def _follow(process: "subprocess.Popen[str]", progress: Optional[Callable[[Dict[str, Any]], None]]) -> List[str]:
    """Hands each line of progress on; returns the other lines (warnings, the error)."""
    said: List[str] = []
    for line in process.stderr or ():
        try:
            step = json.loads(line) if line.startswith("{") else None
        except ValueError:
            step = None
        if step is None:
            said.append(line.rstrip())
        elif progress is not None:
            progress(step)
    return said


def optimize(model: Path, output: Optional[Path] = None, *,
             progress: Union[Callable[[Dict[str, Any]], None], bool] = True, **options: Any) -> Dict[str, Any]:
    """Makes a verified release of an ONNX file with the executable `thrice` and returns its report (`report["release"]`
    is the file).

    output: the release to write; default: the model's name with .thrice in the working folder.
    progress: a callable gets {"phase", "done", "total", "region", "speedup", "seconds_left"} (keys that are not known
    are left out), at most 10 times a second; True shows the executable's own live line; False shows nothing.
    options: the flags of `thrice optimize`, with underscores: budget="2m", trials=200, device="cuda:0",
    dims={"batch": 1}, no_tune=True, config="settings.yaml". A list repeats a flag.

    Ctrl-C stops at the next safe point and returns the best so far; pressed again, it ends the executable.
    Raises ThriceError with the executable's message and status.
    """
    command = [find_executable(), "optimize", os.fspath(model), "--json"]
    if output is not None:
        command += ["--output", os.fspath(output)]
    command += _flags(options)
    shows_line = progress is True
    if callable(progress):
        command += ["--progress", "json"]
    elif not progress:
        command.append("--quiet")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as report:
        # A session of its own: Ctrl-C reaches this process alone, which passes it on once.
        process = subprocess.Popen(command, stdout=report, stderr=None if shows_line else subprocess.PIPE, text=True,
                                   encoding="utf-8", errors="replace", start_new_session=True)
        said: List[str] = []
        stops = 0
        try:
            while True:
                try:
                    said += _follow(process, progress if callable(progress) else None)
                    code = process.wait()
                    break
                except KeyboardInterrupt:
                    stops += 1
                    process.send_signal(signal.SIGINT if stops == 1 else signal.SIGKILL)
        except BaseException:  # the callable raised: nothing is left running
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
        finally:
            if process.stderr:
                process.stderr.close()
        report.seek(0)
        text = report.read()
    if code != 0:
        message = "\n".join(said[-20:]) or f"thrice optimize ended with exit code {code}; its message is above"
        raise error_of(message, _STATUS_OF_EXIT.get(code, "Internal"))
    return json.loads(text)
