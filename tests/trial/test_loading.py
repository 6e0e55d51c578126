"""How many DataLoader workers a training needs, by the times of its own loader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.loader_batches import MS, batches, facts, with_loader

from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast
from tb_dlprof_plugin.simulation.loader import WorkersStep
from tb_dlprof_plugin.trial.inside.remedies import make
from tb_dlprof_plugin.trial.loading import Loading, workers_needed


@pytest.mark.parametrize(
    ("loading", "cpus", "needed"),
    [
        # 60 of 80 ms are spent on waiting for a disk: with four workers a batch comes each 15 ms.
        (Loading(0.06, 0.001, 0, 0.08), 16, (4, 75.0)),
        # The same on a CPU: two CPUs share the 80 ms of a step.
        (Loading(0.06, 0.06, 0, 0.08), 2, (2, 50.0)),
        # Two workers set the pace of 50 ms: a batch is 100 ms of work.
        (Loading(0.04, 0.0, 2, 0.05), 16, (8, 75.0)),
        (Loading(0.001, 0.001, 0, 0.08), 16, None),
        (Loading(0.04, 0.04, 8, 0.05), 16, None),
        # The steps compute on both CPUs, of which a worker takes its share.
        (Loading(0.02, 0.02, 0, 0.08, 0.12), 2, (1, 12.5)),
        # A worker makes all batches in time, but starts every ten steps, or every four.
        (Loading(0.01, 0.01, 0, 0.08, 0.07, 0.1), 16, (1, 8.5)),
        (Loading(0.01, 0.01, 0, 0.08, 0.07, 0.25), 16, None),
    ],
    ids=[
        "disk",
        "2 CPUs",
        "too few workers",
        "no wait",
        "as many as there are",
        "no CPU free",
        "starts",
        "more of them",
    ],
)
def test_the_fewest_workers_with_which_no_step_waits(
    loading: Loading, cpus: int, needed: tuple[int, float] | None
) -> None:
    found = workers_needed(loading, cpus)
    # Handing a batch over takes 0.3 ms.
    assert found == needed if needed is None else found == (needed[0], pytest.approx(needed[1], abs=1.5))


def test_a_recording_with_today_s_workers_counts_more_than_the_waits() -> None:
    def step(workers: int, ms: float) -> WorkersStep:
        return WorkersStep(workers, 1e6 * ms, 1e6 * ms, 1e6 * ms, 0.0)

    waits = Loading(0.06, 0.001, 0, 0.08)
    steps = (step(0, 80), step(1, 70), step(2, 50), step(4, 40), step(8, 20))
    recorded = LoaderForecast(steps, steps[0], steps[-1], None)
    assert workers_needed(waits, 16, recorded=recorded) == (8, 75.0)
    other = LoaderForecast(steps, steps[1], steps[-1], None)
    assert workers_needed(waits, 16, recorded=other) == workers_needed(waits, 16)


def test_each_number_of_workers_has_its_own_forecast_by_a_recording(new_trace: Callable[..., Any]) -> None:
    trace = new_trace()
    trace.step(0, 0, 1000)
    trace.op("aten::mm", 10, 500)
    view = trace.view()
    recorded = with_loader(view, batches(), facts())
    one, two, four = (make(f"loader_workers_{count}") for count in (1, 2, 4))
    assert one.forecast(recorded) == pytest.approx(0)
    # A batch takes 31.1 ms in one worker, a step 10.7 at least.
    assert two.forecast(recorded) == pytest.approx(50, abs=2)
    assert four.forecast(recorded) == pytest.approx(66, abs=2)
    assert two.forecast(view) is None
    assert two.forecast(with_loader(view, batches(wait_ns=60 * MS), facts())) is None
