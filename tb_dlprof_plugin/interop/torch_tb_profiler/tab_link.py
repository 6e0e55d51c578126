"""What to choose in the PyTorch Profiler tab to see a profile there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from tb_dlprof_plugin.interop.torch_tb_profiler.file_names import worker_of

TabTrace = Literal["copy", "original"]


class PytorchTab(msgspec.Struct, frozen=True):
    """What to choose in the PyTorch Profiler tab to see this profile there.

    ``span`` is None where the worker has one trace. ``reads`` is "copy" where the tab finds a trace that it
    understands, "original" where it finds what torch wrote, of which it reads no device times; ``remedy`` is the
    command that makes the copy.
    """

    run: str
    worker: str
    span: int | None
    reads: TabTrace
    remedy: str


class _TraceFile(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def copy(self) -> bool: ...
    @property
    def of_profile(self) -> bool: ...


def pytorch_tab(files: Sequence[_TraceFile], run: str, directory: str) -> PytorchTab | None:
    """What the tab shows of the traces in a run's directory; None where it shows none of the profile's.

    Args:
        files: the traces; ``name`` is relative to the directory, and the tab reads what lies in the directory itself.
        run: what the tab calls the directory.
        directory: the directory, as a person would name it.
    """
    read = [file for file in files if "/" not in file.name]
    mine = next((file for file in read if file.of_profile), None)
    if mine is None:
        return None
    worker = worker_of(mine.name)
    spans = sorted(file.name for file in read if worker_of(file.name) == worker)
    return PytorchTab(
        run=run,
        worker=worker,
        span=spans.index(mine.name) + 1 if len(spans) > 1 else None,
        reads="copy" if mine.copy else "original",
        remedy=f"tb-dlprof pytorch-views {shlex.quote(directory)}",
    )
