"""File names of the traces of a run, and which of them the PyTorch Profiler tab reads.

torch-tb-profiler 0.4.3 reads every ``<worker>.<time>.pt.trace.json[.gz]`` of a directory and does not understand what
today's torch writes. Where a copy for it takes that name, the trace that torch wrote is in the subdirectory
`ORIGINALS`, as ``<worker>.<time>.trace.json[.gz]``: a name that the tab passes over, in a directory of its own because
HTA reads every file of a directory.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path

ORIGINALS = "kineto"
"""The directory of what torch wrote, where the run also holds a copy for the PyTorch Profiler tab."""
COPY_MARK = "tb_dlprof_copy_for"
"""The first key of such a copy."""
TAB_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
ORIGINAL_ENDINGS = (".trace.json", ".trace.json.gz")

_MARK_WITHIN_BYTES = 256
_ENDING = re.compile(r"(\.pt)?(\.trace)?(\.json)?(\.gz)?$")
_TIME = re.compile(r"\.\d+$")


def stem_of(name: str) -> str:
    """A trace's name without directory and endings: "worker0.123" of "kineto/worker0.123.trace.json.gz"."""
    name = name.rpartition("/")[2]
    return _ENDING.sub("", name) or name


def worker_of(name: str) -> str:
    """The worker that the PyTorch Profiler tab reads from a trace's name: "worker0" of "worker0.123.pt.trace.json"."""
    return _TIME.sub("", stem_of(name))


def original_name(stem: str, packed: bool) -> str:
    """The trace that torch wrote, relative to its run's directory, where the tab has a copy."""
    return f"{ORIGINALS}/{stem}.trace.json{'.gz' if packed else ''}"


def names_of(stem: str) -> list[str]:
    """All names that traces of this stem can have in a run's directory."""
    return [stem + ending for ending in TAB_ENDINGS] + [f"{ORIGINALS}/{stem}{ending}" for ending in ORIGINAL_ENDINGS]


def is_copy(path: Path) -> bool:
    """Whether a file is a copy for the PyTorch Profiler tab; False for what cannot be read."""
    try:
        with gzip.open(path) as file:
            return path.suffix == ".gz" and COPY_MARK.encode() in file.read(_MARK_WITHIN_BYTES)
    except (OSError, EOFError):
        return False


def copy_name(stem: str) -> str:
    """The copy for the PyTorch Profiler tab, in the run's directory."""
    return f"{stem}.pt.trace.json.gz"
