"""Writes the Kineto trace as ``torch.profiler.tensorboard_trace_handler`` does, and checks that it is complete.

Kineto reports a full disk or a directory that cannot be written only on stderr: `export_chrome_trace` returns normally.
A trace whose file is missing or does not end in ``}`` counts as not written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from typing import Any

_NEARLY_FULL_BYTES = 1 << 20


class TraceExportError(Exception):
    """The trace could not be written. The message is a clause with the reason."""


def export_trace(prof: Any, path: str, use_python_export: bool = False) -> None:
    """Write the trace of ``prof``, a ``torch.profiler.profile``, to ``path``.

    Raises:
        ExportError: the trace could not be written in full; the partial file is removed.
    """
    if _is_lost(prof):
        raise TraceExportError("another profiler ended this one's recording; torch has only one at a time")
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise TraceExportError(
            f"the directory {folder} cannot be made ({_reason(error)}); choose another logdir"
        ) from None
    try:
        # Only newer torch versions have the argument.
        options = {"use_python_export": True} if use_python_export else {}
        prof.export_chrome_trace(path, **options)
        whole = _is_whole(path)
    except Exception as error:
        whole = False
        why = _reason(error)
    else:
        why = "it was cut short" if os.path.exists(path) else "the file could not be written"
    if whole:
        return
    for leftover in (path, path + ".tmp"):
        remove(leftover)
    if _is_full(folder):
        why = "the disk is full"
    elif not os.access(folder, os.W_OK):
        why = "the directory cannot be written"
    raise TraceExportError(f"{why}; check free space and permissions of {folder}")


def remove(path: str) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def why_not_writable(folder: str) -> str | None:
    """The reason why ``folder`` can neither be written nor created; None if it can.

    Judged by a file without a name in its nearest existing ancestor, because permissions alone do not show a read-only
    file system, and not to the superuser. Leaves nothing behind.
    """
    nearest = folder
    while not os.path.lexists(nearest) and os.path.dirname(nearest) != nearest:
        nearest = os.path.dirname(nearest)
    try:
        tempfile.TemporaryFile(dir=nearest).close()
    except OSError as error:
        why = _reason(error) if os.path.isdir(nearest) else "not a directory"
        return why if nearest == folder else f"{nearest}: {why}"
    return "the disk is full" if _is_full(nearest) else None


def _is_lost(prof: Any) -> bool:
    """Whether torch has no trace: it would write through a null pointer."""
    with contextlib.suppress(Exception):
        return bool(prof.profiler.kineto_results.trace_start_ns() == 0)
    return False


def _is_whole(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64))
            return file.read().rstrip().endswith(b"}")
    except FileNotFoundError:
        return False


def _is_full(folder: str) -> bool:
    try:
        return shutil.disk_usage(folder).free < _NEARLY_FULL_BYTES
    except OSError:
        return False


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "the disk is full"
        return error.strerror or type(error).__name__
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
