"""How many DataLoader workers a training needs, by the times of its own loader."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.trial.loading import Loading, workers_needed


@pytest.mark.parametrize(
    ("loading", "cpus", "needed"),
    [
        # 60 of 80 ms are spent on waiting for a disk: with four workers a batch comes each 15 ms.
        (Loading(0.06, 0.001, 0, 0.08), 16, (4, 75.0)),
        # The same on a CPU: two CPUs have room for one worker, which takes 60 ms a batch.
        (Loading(0.06, 0.06, 0, 0.08), 2, (1, 25.0)),
        # Two workers set the pace of 50 ms: a batch is 100 ms of work.
        (Loading(0.04, 0.0, 2, 0.05), 16, (8, 75.0)),
        (Loading(0.001, 0.001, 0, 0.08), 16, None),
        (Loading(0.04, 0.04, 8, 0.05), 16, None),
    ],
    ids=["disk", "one CPU left", "too few workers", "no wait", "as many as there are"],
)
def test_the_fewest_workers_with_which_no_step_waits(
    loading: Loading, cpus: int, needed: tuple[int, float] | None
) -> None:
    found = workers_needed(loading, cpus)
    assert found == needed if needed is None else found == (needed[0], pytest.approx(needed[1]))
