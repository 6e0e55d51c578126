"""Which step of a light window a call and a launch belong to."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.profile import LightCalls, LightLaunches, LightWindow


def column(*values: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, dtype=np.int64)


def test_a_launch_belongs_to_the_step_of_its_call_and_without_one_to_that_in_which_it_begins() -> None:
    zeros = column(0, 0, 0, 0, 0)
    window = LightWindow(
        boundary_ns=column(100, 200, 300),
        iteration=column(0, 1),
        # A call at a boundary belongs to the step that begins.
        calls=LightCalls(
            name=zeros[:3], start_ns=column(100, 199, 200), duration_ns=zeros[:3], thread=zeros[:3], call=zeros[:3]
        ),
        launches=LightLaunches(
            call=column(-1, -1, 0, 1, 2),
            start_ns=column(90, 110, 150, 250, 350),
            duration_ns=zeros,
            device=zeros,
            stream=zeros,
            launch=zeros,
        ),
    )
    assert window.step_of_calls().tolist() == [0, 0, 1]
    assert window.step_of_launches().tolist() == [-1, 0, 0, 0, 1]
