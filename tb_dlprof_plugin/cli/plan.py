"""``tb-dlprof plan``: what a training takes of a GPU's memory in another configuration, and what else would fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import OutputFormat, Printing, Source
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_page
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size, energy
from tb_dlprof_plugin.model.plan_request import PARTS, TENSOR_PARALLEL, PlanError, PlanQuestion
from tb_dlprof_plugin.model.run_choice import ProfileChoice
from tb_dlprof_plugin.pages.plan import PlanFigure, PlanPage, plan_page
from tb_dlprof_plugin.pages.plan_rows import CheckpointRow, PlanRow
from tb_dlprof_plugin.pages.plan_split import ShardRow, StageRow

NOT_FITTING = 3
"""Exit status of `--fail-if-not-fits`, where it does not or is not known to."""


@takes_requests
def plan(
    source: Source,
    question: PlanQuestion,
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

    Of a run that was recorded with its memory (`run --memory`): whether it fits, the largest batch, the step time.
    --also adds other batch sizes, GPUs, sets of checkpoints, and ways to share the work over GPUs.
    """
    if tensor_parallel is not None:
        if question.shard not in (None, TENSOR_PARALLEL) or question.gpus not in (1, tensor_parallel):
            refuse("--tensor-parallel names the way to share and the number of GPUs: leave out --shard and --gpus.")
        question = replace(question, shard=TENSOR_PARALLEL, gpus=tensor_parallel)
    asked = printing.table or (PARTS[0] if printing.output in (OutputFormat.csv, OutputFormat.parquet) else "")
    if asked in PARTS:
        question = replace(question, also=(*question.also, asked))
    chosen = choose(source, choice)
    try:
        page = plan_page(chosen.view, chosen.ref, question)
    except PlanError as error:
        refuse(f"{source}: {error}")
    print_page(page, printing, text=lambda: _print_text(page))
    if fail_if_not_fits and not page.fits:
        raise typer.Exit(NOT_FITTING)


def _print_text(page: PlanPage) -> None:
    say(page.headline, "")
    if page.figures:
        print_rows(PlanFigure, page.figures)
        for held in page.held:
            say(f"Held: {held.kind}: {byte_size(held.mb * 1e6)}")
        say()
    if page.step_ms is not None:
        rate = f", {page.samples_per_second:,.0f} samples/s" if page.samples_per_second else ""
        joules = f", {energy(page.joules_per_step)}" if page.joules_per_step is not None else ""
        say(f"Step: {page.step_ms:.2f} ms ({page.step_low_ms:.2f} to {page.step_high_ms:.2f}){rate}{joules}", "")
    for rows, others in ((page.batches, ("gpu", "largest_batch")), (page.gpus, ("batch_size",))):
        if rows:
            print_rows(PlanRow, rows, without=others)
            say()
    if len(page.checkpoints) > 1:
        print_rows(CheckpointRow, page.checkpoints, cells={"modules": _checkpointed})
        say()
    _print_split(page)
    for reason in page.reasons:
        say(f"{UNKNOWN}: {reason}")
    for sentence in page.assumptions:
        say(f"Assumed: {sentence}")


def _print_split(page: PlanPage) -> None:
    """Several GPUs, and deeper networks."""
    if page.shards:
        say(f"Over {page.shards[0].gpus} GPUs", "")
        print_rows(ShardRow, page.shards)
        say()
    if len(page.stages) > 1:
        say(f"Cut over {len(page.stages)} GPUs", "")
        print_rows(StageRow, page.stages, cells={"modules": _stage})
        say()
    if page.gpus_needed is not None:
        say(f"GPUs needed: {page.gpus_needed}")
    if page.deepest is not None:
        deepest = page.deepest
        say(f"Deepest: {deepest.more:,} more modules like {deepest.module} fit, of which it has {deepest.now}.")
    if page.gpus_needed is not None or page.deepest is not None:
        say()


def _checkpointed(row: CheckpointRow) -> str:
    return f"{len(row.modules)}, with {row.modules[-1]}" if row.modules else "none"


def _stage(row: StageRow) -> str:
    return " to ".join(dict.fromkeys((row.modules[0], row.modules[-1])))
