"""Bars of long recordings: means of iterations in a row that add up, and what they leave out is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.recorded_runs import recorded_view

from tb_dlprof_plugin.pages import iteration_bins
from tb_dlprof_plugin.pages.iteration_bins import bar_spans, bars_note
from tb_dlprof_plugin.pages.launches import launches_page
from tb_dlprof_plugin.pages.ops import ops_page
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.work_detail import work_detail
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

RECORDED = Path(__file__).resolve().parents[2] / "demo" / "recorded"
REF = RunRef("mlp/fp32", "s", 0, 0)


@pytest.fixture(scope="module")
def view() -> ProfileView:
    """Ten iterations on an H200."""
    return recorded_view(RECORDED / "mlp" / "fp32")


@pytest.mark.parametrize(
    ("count", "size", "spans"), [(0, 0, 0), (1, 1, 1), (1000, 1, 1000), (1001, 2, 501), (50_000, 50, 1000)]
)
def test_a_bar_stands_for_equally_many_iterations(count: int, size: int, spans: int) -> None:
    made = bar_spans(count)
    assert len(made) == spans
    assert [first for first, _ in made] == [0, *(last + 1 for _, last in made[:-1])][: len(made)]
    assert {last - first + 1 for first, last in made[:-1]} <= {size}
    assert not made or made[-1][1] == count - 1


def test_the_note_is_there_only_where_bars_are_merged() -> None:
    assert bars_note(1000) == bars_note(0) == ""
    assert bars_note(2500) == (
        "2,500 iterations in 834 bars: each is the mean of 3 in a row, the mark above it the longest of them."
    )


def test_merged_bars_are_the_means_of_the_single_ones(view: ProfileView, monkeypatch: pytest.MonkeyPatch) -> None:
    selection = view.selection(4, 5)
    op = ops_page(view, REF, selection).rows[0].id
    single = (
        overview(view, REF, selection).iterations,
        launches_page(view, REF, selection).bars,
        work_detail(view, REF, selection, "op", op).iterations,
    )
    assert [(bar.index, bar.last) for bar in single[0]] == [(index, index) for index in range(10)]
    assert all(bar.shortest_ns == bar.duration_ns == bar.longest_ns for bar in (*single[0], *single[1]))
    monkeypatch.setattr(iteration_bins, "MOST_BARS", 4)
    page, launches = overview(view, REF, selection), launches_page(view, REF, selection)
    detail = work_detail(view, REF, selection, "op", op)
    assert page.bars_note == launches.bars_note == detail.bars_note != ""
    spans = [(0, 2), (3, 5), (6, 8), (9, 9)]
    for merged, one in ((page.iterations, single[0]), (launches.bars, single[1])):
        assert [(bar.index, bar.last) for bar in merged] == spans
        assert [bar.selected for bar in merged] == [False, True, False, False]
        for bar in merged:
            group = one[bar.index : bar.last + 1]
            durations = [each.duration_ns for each in group]
            assert bar.duration_ns == sum(durations) // len(group)
            assert (bar.shortest_ns, bar.longest_ns) == (min(durations), max(durations))
            assert (bar.number, bar.last_number, bar.start_ns) == (group[0].number, group[-1].number, group[0].start_ns)
            assert sum(value or 0 for value in bar.category_ns) == bar.duration_ns
            parts = list(zip(*(each.category_ns for each in group), strict=True))
            for mean, part in zip(bar.category_ns, parts, strict=True):
                # One of them takes the rounding of the others.
                assert mean is None or abs(mean - sum(value or 0 for value in part) / len(group)) <= len(parts)
    for row in detail.iterations:
        group = single[2][row.index : row.last + 1]
        times = [each.gpu_ns or 0 for each in group]
        assert row.gpu_ns == round(sum(times) / len(times))
        assert (row.shortest_ns, row.longest_ns) == (min(times), max(times))
        assert row.calls == sum(each.calls for each in group) / len(group)
