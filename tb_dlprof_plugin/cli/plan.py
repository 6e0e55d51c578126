"""``tb-dlprof plan``: what a training takes of a GPU's memory in another configuration, and what else would fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Printing, Source
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size, energy
from tb_dlprof_plugin.model.plan_request import TENSOR_PARALLEL, PlanRequest
from tb_dlprof_plugin.model.run_choice import ProfileChoice
from tb_dlprof_plugin.pages.plan import PlanPage, PlanRow, plan_page
from tb_dlprof_plugin.planning.memory.rewrites import PlanError

NOT_FITTING = 3
"""Exit status of `--fail-if-not-fits`, where it does not or is not known to."""


@takes_requests
def plan(
    source: Source,
    request: PlanRequest,
    tensor_parallel: Annotated[
        int | None,
        typer.Option(help="GPUs that share pairs of linear layers, as --shard tp --gpus N.", metavar="N"),
    ] = None,
    fail_if_not_fits: Annotated[
        bool, typer.Option("--fail-if-not-fits", help=f"Exit with {NOT_FITTING} unless it is known to fit.")
    ] = False,
    *,
    choice: ProfileChoice,
    printing: Printing,
) -> None:
    """Plan the memory of another configuration.

    Of a run that was recorded with profile_memory=True: whether it fits, the largest batch, the step time.
    """
    if tensor_parallel is not None:
        if request.shard not in (None, TENSOR_PARALLEL) or request.gpus not in (1, tensor_parallel):
            refuse("--tensor-parallel names the way to share and the number of GPUs: leave out --shard and --gpus.")
        request = replace(request, shard=TENSOR_PARALLEL, gpus=tensor_parallel)
    chosen = choose(source, choice)
    try:
        page = plan_page(chosen.view, chosen.ref, request)
    except PlanError as error:
        refuse(f"{source}: {error}")
    print_page(page, printing, text=lambda: _print_text(page))
    if fail_if_not_fits and not page.fits:
        raise typer.Exit(NOT_FITTING)


def _print_text(page: PlanPage) -> None:
    say(page.headline, "")
    if page.figures:
        print_table(
            (("memory", "left"), ("likely", "right"), ("at least", "right"), ("at most", "right")),
            [(row.name, _size(row.mb), _size(row.low_mb), _size(row.high_mb)) for row in page.figures]
            + [(f"held: {row.kind}", _size(row.mb), "", "") for row in page.held],
        )
        say()
    if page.step_ms is not None:
        rate = f", {page.samples_per_second:,.0f} samples/s" if page.samples_per_second else ""
        joules = f", {energy(page.joules_per_step)}" if page.joules_per_step is not None else ""
        say(f"Step: {page.step_ms:.2f} ms ({page.step_low_ms:.2f} to {page.step_high_ms:.2f}){rate}{joules}", "")
    for title, rows in (("batch", page.batches), ("GPU", page.gpus)):
        if rows:
            _print_rows(title, rows)
    if len(page.checkpoints) > 1:
        print_table(
            (("checkpointed", "left"), ("peak", "right"), ("reserved", "right"), ("step", "right")),
            [
                (
                    f"{len(row.modules)}: + {row.modules[-1]}" if row.modules else "none",
                    _size(row.peak_allocated_mb),
                    _size(row.peak_reserved_mb),
                    UNKNOWN if row.step_ms is None else f"{row.step_ms:.2f} ms",
                )
                for row in page.checkpoints
            ],
        )
        say()
    _print_split(page)
    for name, why in page.unknown.items():
        say(f"{name}: {UNKNOWN}: {why}")
    for sentence in page.assumptions:
        say(f"Assumed: {sentence}")


def _print_split(page: PlanPage) -> None:
    """Several GPUs, and deeper networks."""
    if page.shards:
        print_table(
            ((f"over {page.shards[0].gpus} GPUs", "left"), ("peak", "right"), ("reserved", "right"), ("fits", "left")),
            [
                (row.shard, _size(row.peak_allocated_mb), _size(row.peak_reserved_mb), row.verdict)
                for row in page.shards
            ],
        )
        say()
    if len(page.stages) > 1:
        print_table(
            (("stage", "left"), ("from", "left"), ("to", "left"), ("peak", "right"), ("reserved", "right")),
            [
                (
                    str(number + 1),
                    row.modules[0],
                    row.modules[-1],
                    _size(row.peak_allocated_mb),
                    _size(row.peak_reserved_mb),
                )
                for number, row in enumerate(page.stages)
            ],
        )
        say()
    if page.gpus_needed is not None:
        say(f"GPUs needed: {page.gpus_needed}")
    if page.deepest is not None:
        deepest = page.deepest
        say(f"Deepest: {deepest.more:,} more modules like {deepest.module} fit, of which it has {deepest.now}.")
    if page.gpus_needed is not None or page.deepest is not None:
        say()


def _print_rows(title: str, rows: list[PlanRow]) -> None:
    print_table(
        (
            (title, "left"),
            ("peak", "right"),
            ("reserved", "right"),
            ("least", "right"),
            ("of", "right"),
            ("verdict", "left"),
            ("largest batch", "right"),
            ("step", "right"),
            ("samples/s", "right"),
        ),
        [
            (
                f"{row.batch_size:,}" if title == "batch" and row.batch_size else row.gpu,
                _size(row.peak_allocated_mb),
                _size(row.peak_reserved_mb),
                _size(row.smallest_limit_mb),
                _size(row.capacity_mb),
                row.verdict,
                "" if row.largest_batch is None else f"{row.largest_batch:,}",
                UNKNOWN if row.step_ms is None else f"{row.step_ms:.2f} ms",
                UNKNOWN if row.samples_per_second is None else f"{row.samples_per_second:,.0f}",
            )
            for row in rows
        ],
    )
    say()


def _size(mb: float | None) -> str:
    return UNKNOWN if mb is None else byte_size(mb * 1e6)
