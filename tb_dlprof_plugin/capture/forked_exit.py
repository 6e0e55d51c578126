"""Lets the forked children of a process in which a profiler has run end.

torch's profiler leaves a thread, libkineto's. A forked child has its condition variable and not the thread, and waits
for it forever when the interpreter's exit destroys C++ objects.
"""

from __future__ import annotations

import ctypes
import os

from tb_dlprof_plugin.capture.warn import probe

_registered: list[bool] = []


def let_forked_children_end() -> None:
    """Call where a profiler of ours starts; later calls do nothing."""
    if not _registered and hasattr(os, "register_at_fork"):
        _registered.append(True)
        os.register_at_fork(after_in_child=lambda: probe(_end_without_destructors))


def _end_without_destructors() -> None:
    """Of the functions that exit() calls, last to first, let these be the first: one that writes C's buffers, then one
    that ends the process with the status of exit(). Python's own are called before."""
    libc = ctypes.CDLL(None)
    libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)
    libc.__cxa_atexit(ctypes.cast(libc.fcloseall, ctypes.c_void_p), None, None)
