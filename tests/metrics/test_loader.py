"""What the measured batches of a DataLoader say: stages, the slow part, the step with other numbers of workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.loader_batches import MS, batches, facts, with_loader

from tb_dlprof_plugin.metrics.loader.batches import memory_of, waiting_share, why_unknown
from tb_dlprof_plugin.metrics.loader.forecast import (
    loader_forecast,
    loader_pace_ns,
    step_without_slow_part,
    why_no_forecast,
)
from tb_dlprof_plugin.metrics.loader.parts import slow_items, slow_part, stages
from tb_dlprof_plugin.metrics.loader.work import loader_work
from tb_dlprof_plugin.model.profile import WORKER_UNKNOWN, LoaderBatches
from tb_dlprof_plugin.model.run_facts import RunFacts
from tb_dlprof_plugin.profile_view import ProfileView


@pytest.fixture
def view(new_trace: Callable[..., Any]) -> Callable[..., ProfileView]:
    """A recording on a CPU with a loader."""

    def make(table: LoaderBatches, of: RunFacts) -> ProfileView:
        trace = new_trace()
        for step in range(3):
            trace.step(step, 1000 * step, 1000)
            trace.op("aten::mm", 1000 * step + 10, 500)
        return with_loader(trace.view(), table, of)

    return make


def test_stages_are_the_means_of_batches_in_the_order_of_the_pipeline(view: Callable[..., ProfileView]) -> None:
    found = {one.stage: one for one in stages(view(batches(), facts(workers=2)))}
    assert list(found) == ["items", "collate", "put", "unpickle", "train"]
    assert (found["items"].ns, found["items"].cpu_ns, found["items"].lanes) == (30 * MS, MS, 2)
    assert found["items"].per_second == pytest.approx(2e9 / (30 * MS))
    assert found["train"].ns == pytest.approx(10 * MS, rel=1e-3)
    alone = stages(view(batches(worker=-1, put_ns=0, put_cpu_ns=0, unpickle_ns=-1), facts(workers=0)))
    assert [one.stage for one in alone] == ["items", "collate", "train"]


def test_four_workers_hide_a_loader_that_takes_three_steps_a_batch(view: Callable[..., ProfileView]) -> None:
    found = loader_forecast(view(batches(), facts()))
    assert found is not None
    steps = {one.workers: one.ns / MS for one in found.steps}
    assert found.now.workers == 1
    assert steps[1] == pytest.approx(31.1, rel=0.02)
    assert steps[0] == pytest.approx(41, rel=0.02)
    assert found.best.workers == 3 or (found.best.workers == 4 and steps[3] > 1.03 * steps[4])
    assert steps[8] == pytest.approx(10.7, rel=0.03)


def test_workers_that_save_a_few_percent_are_not_advised(view: Callable[..., ProfileView]) -> None:
    found = loader_forecast(view(batches(gap_ns=30 * MS, wait_ns=MS), facts()))
    assert found is not None
    shortest = min(one.ns for one in found.steps)
    assert 0.94 < shortest / found.now.ns < 0.99
    assert found.best == found.now


def test_nothing_is_forecast_where_the_workers_were_not_seen_or_batches_are_few(
    view: Callable[..., ProfileView],
) -> None:
    none = view(LoaderBatches.none(), RunFacts())
    assert "No batch of a DataLoader was measured" in (why_unknown(none) or "")
    unseen = view(batches(worker=WORKER_UNKNOWN, items_ns=-1), facts(missing="The workers were started before."))
    assert (why_unknown(unseen) or "").startswith("The workers were started before.")
    assert (stages(unseen), loader_forecast(unseen), slow_part(unseen)) == ((), None, None)
    assert waiting_share(unseen) == pytest.approx(21 / 31)
    few = view(batches(9), facts())
    assert "Only 9 batches" in (why_unknown(few) or "")
    assert loader_forecast(few) is None


def test_nothing_is_forecast_where_the_simulation_does_not_give_the_recorded_step(
    view: Callable[..., ProfileView],
) -> None:
    of = view(batches(wait_ns=60 * MS), facts())
    assert (why_no_forecast(of) or "").startswith("As recorded the step took 70.0 ms, simulated 31.")
    assert (loader_forecast(of), loader_pace_ns(of), step_without_slow_part(of)) == (None, None, None)
    # What was measured stays.
    assert stages(of)
    assert slow_part(of) is not None


def test_few_batches_have_a_wide_interval(view: Callable[..., ProfileView]) -> None:
    few, many = (loader_forecast(view(batches(count), facts())) for count in (20, 60))
    assert few is not None
    assert many is not None
    assert few.now.high_ns - few.now.low_ns > 2 * (many.now.high_ns - many.now.low_ns)


def test_many_tensors_whose_hand_over_was_not_measured_have_a_wide_interval(view: Callable[..., ProfileView]) -> None:
    alone = {"worker": -1, "wait_ns": 31 * MS, "unpickle_ns": -1, "unpickle_cpu_ns": -1}
    many, few = (loader_forecast(view(batches(tensors=count, **alone), facts(workers=0))) for count in (40, 2))
    assert many is not None
    assert few is not None
    assert many.now.ns == few.now.ns
    assert many.now.high_ns - many.now.low_ns > 2 * (few.now.high_ns - few.now.low_ns)


def test_the_wait_for_the_worker_that_unpickling_is_may_end_with_more_workers_or_stay(
    view: Callable[..., ProfileView],
) -> None:
    # The training takes 10 ms, unpickling 10 on a core and 10 of waiting, the workers 15 a batch.
    table = batches(tensors=60, items_ns=14 * MS, unpickle_ns=20 * MS, unpickle_cpu_ns=10 * MS, wait_ns=20 * MS)
    found = loader_forecast(view(table, facts(workers=2)))
    assert found is not None
    steps = {one.workers: one for one in found.steps}
    assert found.now.ns == pytest.approx(30 * MS, rel=0.03)
    assert steps[8].ns == pytest.approx(26 * MS, rel=0.03)
    assert steps[8].low_ns == pytest.approx(0.9 * 22 * MS, rel=0.05)
    assert steps[8].high_ns == pytest.approx(1.1 * 30 * MS, rel=0.05)
    assert steps[1].ns > 1.1 * found.now.ns


def test_without_workers_no_shared_memory_is_written(view: Callable[..., ProfileView]) -> None:
    large = {"collate_ns": 20 * MS, "collate_cpu_ns": 20 * MS, "process_cpu_ns": 21 * MS}
    table = batches(**large, wait_ns=40 * MS)
    found = loader_forecast(view(table, facts(shared_write_ns=15.0 * MS, shared_free_ns=3.0 * MS)))
    assert found is not None
    # Of 20 ms of collating 15 are pages of shared memory, and of 10 of the training 3 give them back.
    assert found.steps[0].ns == pytest.approx((30 + 5 + 7) * MS, rel=0.02)
    assert found.steps[0].low_ns < 0.9 * (30 + 7) * MS
    assert found.steps[0].high_ns > 1.1 * (30 + 20 + 7) * MS
    assert found.now.ns == pytest.approx(50 * MS, rel=0.02)
    # The pages of items may be new in one start and not in another.
    assert found.now.low_ns == pytest.approx(0.9 * 35 * MS, rel=0.02)
    assert found.now.high_ns == pytest.approx(1.1 * 65 * MS, rel=0.02)


def test_an_interval_holds_the_difference_to_the_recorded_step(view: Callable[..., ProfileView]) -> None:
    off = loader_forecast(view(batches(wait_ns=29 * MS), facts()))
    assert off is not None
    assert off.now.high_ns >= 39 * MS > 1.1 * off.now.ns


def test_the_wait_for_a_core_is_taken_out_where_the_loader_keeps_itself_waiting(
    view: Callable[..., ProfileView],
) -> None:
    busy = {"items_ns": 30 * MS, "items_cpu_ns": 15 * MS, "queued_ns": 15 * MS, "gap_cpu_ns": 10 * MS}
    own = loader_work(view(batches(**busy), facts(cores=1.0)))
    assert own is not None
    assert own.make_off.max() == 0
    assert own.others > 0
    other = loader_work(view(batches(**busy), facts(cores=64.0)))
    assert other is not None
    assert (other.make_off.max(), other.others) == (15 * MS, 0)


@pytest.mark.parametrize(
    ("columns", "fields", "kind", "name"),
    [
        ({}, {}, "transform", "Resize"),
        ({"collate_ns": 40 * MS, "wait_ns": 61 * MS}, {}, "collate", "default_collate"),
        ({"tensors": 100, "items_cpu_ns": 30 * MS, "process_cpu_ns": 51 * MS, "put_ns": 20 * MS, "put_cpu_ns": 20 * MS,
          "unpickle_ns": 9 * MS, "wait_ns": 41 * MS}, {}, "tensors", ""),
        ({"slow_samples": np.arange(60) % 5 == 0, "slow_samples_ns": 100 * MS * (np.arange(60) % 5 == 0)},
         {}, "slow items", ""),
        ({}, {"transforms": [], "transform_samples": None}, "items", ""),
    ],
)  # fmt: skip
def test_the_part_that_costs_most_is_named(
    view: Callable[..., ProfileView], columns: Any, fields: Any, kind: str, name: str
) -> None:
    of = view(batches(**columns), facts(**fields))
    part = slow_part(of)
    assert part is not None
    assert (part.kind, part.name) == (kind, name)
    without, forecast = step_without_slow_part(of), loader_forecast(of)
    assert forecast is not None
    if kind == "items":
        assert without is None
    else:
        assert without is not None
        assert without.ns < forecast.now.ns


def test_short_batches_that_were_left_out_count_for_nothing(view: Callable[..., ProfileView]) -> None:
    left_out = np.arange(60) % 4 > 0
    unknown = {
        name: np.where(left_out, -1, value)
        for name, value in {"items_ns": 30 * MS, "tensors": 100, "bytes": 4096, "put_ns": 20 * MS,
                            "put_cpu_ns": 20 * MS, "unpickle_ns": 9 * MS}.items()
    }  # fmt: skip
    of = view(batches(worker=np.where(left_out, WORKER_UNKNOWN, 0), wait_ns=21 * MS, **unknown), facts())
    part = slow_part(of)
    assert part is not None
    assert part.kind == "tensors"
    assert memory_of(of, 1) == (100 << 20) + 2 * 4096


def test_slow_items_are_counted_with_their_index(view: Callable[..., ProfileView]) -> None:
    at = np.arange(60) == 7
    of = view(batches(slow_samples=at, slow_samples_ns=70 * MS * at, slowest_sample=np.where(at, 4711, -1)), facts())
    found = slow_items(of)
    assert found is not None
    assert (found.count, found.samples, found.times, found.slowest) == (1, 240, pytest.approx(10), 4711)


def test_memory_is_that_of_the_workers_and_the_batches_under_way(view: Callable[..., ProfileView]) -> None:
    assert memory_of(view(batches(), facts()), 3) == 3 * ((100 << 20) + 2 * 4096)
    assert memory_of(view(batches(), facts(worker_memory_bytes=[])), 3) is None


def test_the_loader_s_own_pace_is_that_without_a_training(view: Callable[..., ProfileView]) -> None:
    assert loader_pace_ns(view(batches(wait_ns=6 * MS), facts(workers=2))) == pytest.approx(15.6 * MS, rel=0.03)
    assert loader_pace_ns(view(batches(worker=-1), facts(workers=0))) is None
