"""A recording whose GPU times cannot be says so in one note: shares of them are clipped."""

from __future__ import annotations

from typing import Any

import pytest

from tb_dlprof_plugin.model.profile import Note, Profile

GEMM = "ampere_sgemm_128x64_nn"


def _notes(profile: Profile) -> list[Note]:
    return [note for note in profile.notes if note.code == "contradictory_times"]


def _profile(new_trace: Any, kernels: list[tuple[float, float, int]]) -> Profile:
    """Of a step with kernels by start, duration (us) and stream."""
    trace = new_trace()
    trace.gpu()
    trace.step(0, 0, 1_000)
    trace.op("aten::mm", 10, 500, dims=[[8, 8], [8, 8]], types=["float", "float"])
    for number, (start, duration, stream) in enumerate(kernels):
        trace.launch(GEMM, 12 + 3 * number, start, duration, stream=stream)
    return trace.profile()  # type: ignore[no-any-return]


def test_kernels_of_a_stream_with_more_time_than_passed_are_noted_once(new_trace: Any) -> None:
    profile = _profile(new_trace, [(100, 300, 7), (150, 300, 7), (200, 300, 7), (600, 10, 20)])
    (note,) = _notes(profile)
    assert note.count == 2
    assert note.text.endswith("times of the recording contradict each other, and shares of them were clipped to 100 %.")


@pytest.mark.parametrize(
    "kernels",
    [
        [(100, 300, 7), (400, 300, 7)],
        [(100, 300, 7), (100, 300, 8)],
        # Programmatic dependent launch: each begins shortly before the end of the one in front of it.
        [(100, 100, 7), (199, 100, 7), (320, 100, 7)],
        [],
    ],
    ids=["one after the other", "two streams", "dependent launch", "no kernels"],
)
def test_kernels_that_can_be_are_not_noted(new_trace: Any, kernels: list[tuple[float, float, int]]) -> None:
    assert _notes(_profile(new_trace, kernels)) == []
