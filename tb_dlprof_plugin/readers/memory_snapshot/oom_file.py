"""Reads what is known of a failed allocation: the hook's file, or a snapshot that torch pickled."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tb_dlprof_plugin.model.decoders import json_decoder
from tb_dlprof_plugin.model.out_of_memory import FORMAT, SUMMARY_PATTERN, OomSummary
from tb_dlprof_plugin.readers.errors import TraceError

_MOST_BYTES = 4 << 20
"""Of the hook's file, which has less than 1 MB."""
_MOST_MEMORY, _LEAST_MEMORY = 16 << 30, 1 << 30
_MOST_SECONDS = 1800
"""A snapshot of 5 GB takes two minutes, and some ten times as long where its entries are unlike each other."""
_CODE = (
    "import sys; sys.path[:] = sys.argv[4:]; from {module} import main; "
    "sys.stdout.buffer.write(main(sys.argv[1], *map(int, sys.argv[2:4])))"
)
_CHILD = "tb_dlprof_plugin.readers.memory_snapshot.in_child"
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def files_in(folder: Path) -> list[Path]:
    """The hook's files of a folder, the newest first; links are passed over."""
    found = [path for path in folder.glob(SUMMARY_PATTERN) if path.is_file() and not path.is_symlink()]
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name), reverse=True)


def read_oom(path: Path) -> OomSummary:
    """What a file says; of a folder, its newest.

    Raises:
        TraceError: it is none, is damaged or is too large; one sentence.
    """
    if path.is_dir():
        found = files_in(path)
        if not found:
            raise TraceError(
                f"{path} has no file of a failed allocation: pass oom=True to profile, or use `tb-dlprof run --oom`."
            )
        path = found[0]
    try:
        with path.open("rb") as file:
            head = file.read(2)
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None
    if head in _PICKLES:
        return _unpickled(path)
    return _decoded(path)


def _decoded(path: Path) -> OomSummary:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise TraceError(f"{path} is no file of a failed allocation: it is larger than one can be.")
        found: OomSummary = json_decoder(OomSummary).decode(path.read_bytes())
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise TraceError(
            f"{path} is neither a file of the hook on a failed allocation nor a memory snapshot of torch."
        ) from None
    if found.format != FORMAT:
        raise TraceError(f"{path} was written by another version of tb-dlprof; read it with that one.")
    return found


def _unpickled(path: Path, seconds: int = _MOST_SECONDS, memory: int | None = None) -> OomSummary:
    memory = memory or memory_limit()
    command = [sys.executable, "-c", _CODE.format(module=_CHILD), str(path.resolve()), str(memory), str(seconds)]
    # One thread pool of a library would ask for more than the limit on a machine with many cores.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, *_paths()], capture_output=True, timeout=2 * seconds + 30, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        raise TraceError(f"{path} could not be read within {seconds} seconds.") from None
    with contextlib.suppress(msgspec.DecodeError):
        return json_decoder(OomSummary).decode(done.stdout)
    with contextlib.suppress(msgspec.DecodeError, KeyError):
        why = msgspec.json.decode(done.stdout, type=dict[str, str])["error"]
        raise TraceError(f"{path} is not read as a memory snapshot of torch: {why}.")
    raise TraceError(
        f"{path} is not read as a memory snapshot of torch: reading it takes more than {memory / 2**30:.1f} GiB of "
        f"memory or {seconds} seconds."
    )


def memory_limit() -> int:
    """Bytes that the child may have: half of the machine's memory."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return min(max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2, _LEAST_MEMORY), _MOST_MEMORY)
    return _LEAST_MEMORY


def _paths() -> Sequence[str]:
    """Where this process finds its packages; not the working directory, unless it is one of them."""
    return [path or os.getcwd() for path in sys.path]
