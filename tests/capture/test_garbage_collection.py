"""Full collections of Python's garbage collector are ranges of a recording, and only there."""

from __future__ import annotations

import gc
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.capture.garbage_collection import GarbageRanges
from tb_dlprof_plugin.fleet.facts_of_profile import facts_of_profile
from tb_dlprof_plugin.profile_view import ProfileView


def test_the_time_of_a_full_collection_is_in_the_facts_of_the_rank(tmp_path: Path) -> None:
    marks = GarbageRanges()
    marks.install()
    try:
        gc.collect()  # nothing records yet
        with profile(activities=[ProfilerActivity.CPU]) as recording:
            torch.ones(3) + 1
            gc.collect(0)
            gc.collect()
    finally:
        marks.remove()
    before = len(gc.callbacks)
    marks.remove()
    assert len(gc.callbacks) == before
    path = tmp_path / "trace.json"
    recording.export_chrome_trace(str(path))
    view = ProfileView(analyze_trace(path))
    names = [view.profile.strings[name] for name in view.profile.ops.name[view.profile.calls.op].tolist()]
    assert names.count("Python garbage collection") == 1
    assert facts_of_profile(view).steps.garbage_ns.sum() > 0
