"""The Kernels page's own rules; sums and shares are in ``tests/invariants``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tb_dlprof_plugin.pages.kernels import kernels_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

RUN = Path(__file__).resolve().parents[2] / "demo" / "recorded" / "resnet50" / "amp-fp16"


def test_rows_of_one_name_are_told_apart_and_others_say_nothing() -> None:
    (stored,) = read_profiles(RUN)
    view = ProfileView(stored.profile)
    rows = kernels_page(view, RunRef("run", "", 0, 0), view.selection()).rows
    names = Counter(row.short_name for row in rows)
    assert any(row.told_by for row in rows)
    for row in rows:
        assert bool(row.told_by) == (names[row.short_name] > 1 and bool(row.ops or row.grid))
    shown = Counter((row.short_name, row.told_by) for row in rows)
    # A few differ in nothing but template arguments that the short name leaves out.
    assert sum(count - 1 for count in shown.values()) < 0.1 * len(rows)
