"""Whether a process of any system runs, without a signal: on Windows a signal of number 0 ends it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PROC = Path("/proc")
_SYNCHRONIZE, _WAITED_IN_VAIN = 0x0010_0000, 0x102


def runs(pid: int) -> bool:
    """Whether there is such a process, and it has not ended; one that its parent did not wait for has."""
    if (_PROC / "self").is_dir():
        try:
            # The name, in parentheses, may hold anything.
            return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
        except (OSError, IndexError):
            return False
    if sys.platform == "win32":
        return _runs_on_windows(pid)
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _runs_on_windows(pid: int) -> bool:
    import ctypes

    kernel = getattr(ctypes, "WinDLL")("kernel32")  # noqa: B009 - only Windows has it
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(_SYNCHRONIZE, False, pid))
    if not handle:
        return False
    try:
        waited: int = kernel.WaitForSingleObject(handle, 0)
        return waited == _WAITED_IN_VAIN
    finally:
        kernel.CloseHandle(handle)
