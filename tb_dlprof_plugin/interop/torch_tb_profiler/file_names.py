"""How a run's traces are named where it holds a copy for the PyTorch Profiler tab, and what the tab reads of a name.

torch-tb-profiler 0.4.3 reads every ``<worker>.<time>.pt.trace.json[.gz]`` of a directory, so the copy has that name and
the trace that torch wrote is moved to a subdirectory, under a name that the tab passes over.
"""

from __future__ import annotations

import re

from tb_dlprof_plugin.readers.trace_names import ORIGINALS, stem_of

_TIME = re.compile(r"\.\d+$")


def worker_of(name: str) -> str:
    """The worker that the tab reads from a trace's name: "worker0" of "worker0.123.pt.trace.json"."""
    return _TIME.sub("", stem_of(name))


def copy_name(stem: str) -> str:
    """The copy, relative to the run's directory."""
    return f"{stem}.pt.trace.json.gz"


def original_name(stem: str, packed: bool) -> str:
    """The trace that torch wrote, relative to its run's directory, where the tab has a copy."""
    return f"{ORIGINALS}/{stem}.trace.json{'.gz' if packed else ''}"
