"""The DataLoader page: its headline, stages, workers and hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.loader_batches import MS, batches, facts, with_loader

from tb_dlprof_plugin.model.profile import WORKER_UNKNOWN
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts
from tb_dlprof_plugin.pages.loader import LoaderPage, loader_page
from tb_dlprof_plugin.store.run_ref import RunRef


@pytest.fixture
def page(new_trace: Callable[..., Any]) -> Callable[..., LoaderPage]:
    def make(table: Any = None, of: Any = None) -> LoaderPage:
        trace = new_trace()
        trace.step(0, 0, 1000)
        trace.op("aten::mm", 10, 500)
        view = trace.view()
        if table is not None:
            view = with_loader(view, table, of)
        return loader_page(view, RunRef("run", "s", 0, 0), view.selection())

    return make


def test_a_loader_that_limits_has_its_stage_and_the_workers_that_hide_it(page: Callable[..., LoaderPage]) -> None:
    found = page(batches(), facts())
    assert found.headline.startswith(
        "With 1 worker the training waits for its batch in 68 % of its time. With 3 the step"
    )
    assert [row.key for row in found.stages if row.limits] == ["items"]
    assert {row.workers: row.note for row in found.workers if row.note} == {1: "recorded", 3: "advised"}
    assert (found.workers_now, found.workers_advised, found.unknown) == (1, 3, "")
    assert found.workers[3].memory_bytes == 3 * ((100 << 20) + 2 * 4096)
    (transform,) = found.transforms
    assert (transform.name, transform.sample_ns) == ("Resize", 5 * MS)
    assert transform.percent == pytest.approx(100 * 5 * 4 / 30)
    assert found.hints[0].startswith("Use 3 workers: the step takes")
    assert found.hints[1].startswith("The transform Resize takes 64 % of the time of a batch")


def test_a_loader_that_keeps_up_limits_nothing(page: Callable[..., LoaderPage]) -> None:
    found = page(batches(wait_ns=MS // 4, gap_ns=40 * MS), facts(workers=2))
    assert [row.key for row in found.stages if row.limits] == ["train"]
    assert found.hints == []


def test_what_is_not_known_is_said_and_the_rest_stays(page: Callable[..., LoaderPage]) -> None:
    unseen = page(
        batches(worker=WORKER_UNKNOWN, items_ns=-1, tensors=-1, bytes=-1),
        facts(missing="The workers were started before."),
    )
    assert unseen.headline.endswith("in 68 % of its time. The workers were started before.")
    assert unseen.waiting_percent == pytest.approx(100 * 21 / 31)
    assert (unseen.stages, unseen.workers, unseen.tensors, unseen.workers_advised) == ([], [], None, None)
    none = page()
    assert none.headline == none.unknown
    assert "No batch of a DataLoader was measured" in none.unknown


def test_workers_that_start_with_each_epoch_are_named_where_epochs_are_short(page: Callable[..., LoaderPage]) -> None:
    def hints(**loader: Any) -> list[str]:
        of = facts(workers=2, start_method="spawn")
        of.dataloader = DataLoaderFacts(num_workers=2, **loader)
        return page(batches(wait_ns=MS // 4, gap_ns=40 * MS), of).hints

    # A step of 1 ms; the first batch takes 200.
    (hint,) = hints(persistent_workers=False, batches=800)
    assert "The first batch comes 200 ms after the workers are started by spawn: 20 % of an epoch of 800" in hint
    assert hints(persistent_workers=False, batches=8000) == []
    assert hints(persistent_workers=True, batches=800) == hints(persistent_workers=False) == []


def test_the_training_sets_the_pace_where_workers_make_batches_faster(page: Callable[..., LoaderPage]) -> None:
    def limits(**columns: Any) -> list[str]:
        return [one.key for one in page(batches(**columns), facts()).stages if one.limits]

    assert limits() == ["items"]
    assert limits(gap_ns=30 * MS) == ["items"]
    assert limits(gap_ns=40 * MS) == ["train"]


def test_a_simulation_that_does_not_give_the_recorded_step_is_doubted(page: Callable[..., LoaderPage]) -> None:
    found = page(batches(wait_ns=60 * MS), facts())
    assert "As recorded the step took 70.0 ms, simulated 31." in found.headline
    assert (found.workers_advised, found.workers) == (None, [])
    assert [hint.partition(" takes")[0] for hint in found.hints] == ["The transform Resize"]
    assert "describe" not in page(batches(), facts()).headline


def test_few_batches_are_said_to_be_few(page: Callable[..., LoaderPage]) -> None:
    assert "From 20 batches: the interval is wide." in page(batches(20), facts()).headline
