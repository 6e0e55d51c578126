"""Finds the trace of a profile, to open it in Perfetto, HTA or the PyTorch Profiler tab.

Takes the files of the run's directory and the profile's trace name; returns the matching file, or what to do without
one.
"""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.interop.torch_tb_profiler.tab_link import PytorchTab, pytorch_tab
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.readers.trace_names import stem_of
from tb_dlprof_plugin.store.run_ref import RunRef

_KEEP = "Record with keep_trace=True (the default) to keep it"


class TraceFile(msgspec.Struct, frozen=True):
    """One trace in the run's directory.

    ``name`` is relative to that directory, ``path`` absolute on the machine that TensorBoard runs on; ``version``
    distinguishes a file from one that replaced it. ``copy`` is a trace that was rewritten for the PyTorch Profiler tab;
    ``of_profile`` is True if the profile was made from it.
    """

    name: str
    path: str
    size_bytes: int
    version: str
    copy: bool
    of_profile: bool


class TraceLinks(msgspec.Struct, frozen=True):
    """``files``: those of this profile first; ``missing`` explains a missing trace, and what to do."""

    ref: RunRef
    files: list[TraceFile]
    missing: str | None
    pytorch_tab: PytorchTab | None


def trace_links(
    profile: Profile, ref: RunRef, directory: str, tab_run: str, files: list[tuple[str, str, int, str, bool]]
) -> TraceLinks:
    """The traces of a run.

    Args:
        directory: the run's directory, as shown to the user.
        tab_run: the name of that directory in the PyTorch Profiler tab.
        files: name, path, size in bytes, version and whether it is a copy, of each trace in it.
    """
    known = profile.source.trace_file
    stem = stem_of(known) if known else None
    items = [TraceFile(*file, of_profile=stem_of(file[0]) == stem) for file in files]
    # The original before the copy: it is what every other tool reads.
    items.sort(key=lambda item: (not item.of_profile, item.copy, item.name))
    return TraceLinks(
        ref=ref,
        files=items,
        missing=None if any(item.of_profile for item in items) else _why_missing(known, directory),
        pytorch_tab=pytorch_tab(items, tab_run, directory),
    )


def no_trace_links(ref: RunRef, missing: str) -> TraceLinks:
    """The result if the run's directory cannot be read."""
    return TraceLinks(ref=ref, files=[], missing=missing, pytorch_tab=None)


def _why_missing(known: str, directory: str) -> str:
    if not known:
        return f"The trace of this profile was not kept. {_KEEP}."
    return (
        f"The trace {known!r} is not in {directory}: it was removed, or is a link, or was imported from elsewhere. "
        "Copy it there to open it from here."
    )
