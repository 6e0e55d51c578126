"""The format of ``torch.profiler``'s traces: Chrome's trace event JSON as Kineto writes it, plain or gzip.

`recognises` looks at the first MiB. `read` is in `tb_dlprof_plugin.readers.kineto.reader`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.json_file import head_of
from tb_dlprof_plugin.readers.kineto.blocks import BLOCK_BYTES, read_blocks
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage
from tb_dlprof_plugin.readers.kineto.split import NO_TEXT, is_cut
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.trace_names import (
    ORIGINAL_ENDINGS,
    ORIGINALS,
    TRACE_ENDINGS,
    is_copy,
    run_folder,
    stem_of,
    without_rank,
)

NAME = "kineto"
TITLE = "a trace of the PyTorch profiler (*.pt.trace.json, *.pt.trace.json.gz)"

_PATTERNS = (*(f"*{ending}" for ending in TRACE_ENDINGS), *(f"{ORIGINALS}/*{ending}" for ending in ORIGINAL_ENDINGS))
_HAS_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BEGINS = re.compile(rb'\s*\{\s*"schemaVersion"\s*:')
"""Of traces since PyTorch 1.8.1."""
_HEAD_BYTES = 4096
_EVENTS_OF_TORCH = re.compile(
    rb'\s*\{.*?"traceEvents"\s*:\s*\[.*?"cat"\s*:\s*"(?:cpu_op|python_function|Trace)"', re.DOTALL
)
"""Of traces before which a program wrote its own keys, such as those of Hugging Face's collection."""
_LONG_HEAD_BYTES = 1 << 17
_LIST_OF_EVENTS = re.compile(rb'\[\s*(?:\]|\Z|.*"ph"\s*:|\{[^}]*\Z)', re.DOTALL)


def recognises(path: Path) -> bool:
    """Whether a file is a trace of the PyTorch profiler, as far as its first MiB tells.

    A file without any text, a damaged gzip file and one that ends before its first event count as one: `read` says what
    is wrong with them.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    text, damage = b"", Damage()
    with contextlib.closing(read_blocks(path, damage)) as blocks:
        for block in blocks:
            text += block if text else block.lstrip(NO_TEXT)
            if len(text) >= BLOCK_BYTES:
                break
    if not text or damage.reasons() or _HAS_EVENTS.search(text):
        return True
    if text.startswith(b"["):
        return _LIST_OF_EVENTS.match(text) is not None
    return is_cut(text)


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """The Timeline of the process that a trace holds; of several, such as merged ranks, one for each."""
    from tb_dlprof_plugin.readers.kineto.reader import read_kineto

    return read_kineto(path, progress)


def run_name(path: Path) -> str:
    """The trace's name without its endings and its rank; the directory's where nothing else is left."""
    return without_rank(stem_of(path.name)) or run_folder(path.resolve().parent).name


def files_below(folder: Path) -> set[Path]:
    """Traces as torch wrote them in a directory and those below it; no copy for the PyTorch Profiler tab.

    Files that a program named itself (``rank0_trace.json`` of torchtitan) are known by how they begin, or by torch's
    events in their first 128 KiB.
    """
    found = {file for pattern in _PATTERNS for file in folder.rglob(pattern)}
    others = {file for pattern in ("*.json", "*.json.gz") for file in folder.rglob(pattern)} - found
    found |= {file for file in others if not file.name.startswith(".") and _is_kineto(file)}
    return {file for file in found if not file.name.startswith(".") and not is_copy(file)}


def _is_kineto(file: Path) -> bool:
    try:
        head = head_of(file, _HEAD_BYTES)
        if not head.lstrip().startswith(b"{"):
            return False
        return bool(_BEGINS.match(head) or _EVENTS_OF_TORCH.match(head_of(file, _LONG_HEAD_BYTES)))
    except TraceError:
        return False
