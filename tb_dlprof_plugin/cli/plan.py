"""``tb-dlprof plan``: what a training takes of a GPU's memory in another configuration, and what else would fit."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Cycle, Output, OutputFormat, Rank, Session, Source, TableName
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_page, print_table
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size, energy
from tb_dlprof_plugin.pages.plan import PlanPage, PlanRow, plan_page
from tb_dlprof_plugin.planning.memory.plan_request import PlanError, PlanRequest

NOT_FITTING = 3
"""Exit status of `--fail-if-not-fits`, where it does not or is not known to."""
_UNITS = {"B": 1, "MB": 10**6, "GB": 10**9, "MIB": 2**20, "GIB": 2**30}


class Precision(str, Enum):
    """The precision to plan."""

    bf16 = "bf16"
    fp16 = "fp16"
    fp8 = "fp8"


class Relu(str, Enum):
    """Where ReLUs write, or stand."""

    inplace = "inplace"
    behind_pool = "behind_pool"


class Shard(str, Enum):
    """How GPUs share the work."""

    ddp = "ddp"
    zero1 = "zero1"
    zero2 = "zero2"
    zero3 = "zero3"
    fsdp2 = "fsdp2"
    tp = "tp"


def plan(
    source: Source,
    batch_size: Annotated[int | None, typer.Option(help="Batch size; that of the run by default.")] = None,
    sequence_length: Annotated[int | None, typer.Option(help="Tokens of a sample.")] = None,
    image_size: Annotated[int | None, typer.Option(help="Side of an image; the other grows alike.")] = None,
    precision: Annotated[
        Precision | None, typer.Option(help="Autocast in FP16 or BF16, of an FP32 run; fp8 for matrix products.")
    ] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(help="sgd, momentum, adam or adamw (foreach), adamw_fused, adamw_8bit ...", metavar="NAME"),
    ] = None,
    checkpoint: Annotated[
        str,
        typer.Option(
            help="Modules under activation checkpointing, with commas between; auto chooses the cheapest that fit.",
            metavar="none|auto|MODULES",
        ),
    ] = "none",
    layers: Annotated[
        list[str] | None, typer.Option(help="N more modules like MODULE; can be repeated.", metavar="MODULE=N")
    ] = None,
    accumulate: Annotated[int, typer.Option(help="Batches of an optimizer step.")] = 1,
    offload: Annotated[
        str,
        typer.Option(help="What goes to the CPU, with commas between.", metavar="none|optimizer|MODULES"),
    ] = "none",
    relu: Annotated[
        Relu | None, typer.Option(help="ReLUs that write to their input, or behind their max pooling.")
    ] = None,
    shard: Annotated[Shard | None, typer.Option(help="How GPUs share the work; each runs the batch size.")] = None,
    gpus: Annotated[int, typer.Option(help="Number of GPUs.")] = 1,
    tensor_parallel: Annotated[
        int | None,
        typer.Option(help="GPUs that share pairs of linear layers, as --shard tp --gpus N.", metavar="N"),
    ] = None,
    set_to_none: Annotated[bool | None, typer.Option(help="As given to zero_grad.")] = None,
    expandable_segments: Annotated[bool | None, typer.Option(help="Of PyTorch's allocator.")] = None,
    gpu: Annotated[
        str | None, typer.Option(help="GPU, in words of CUDA's name; that of the run by default.", metavar="NAME")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of a GPU, such as 24GiB.", metavar="SIZE")] = None,
    fail_if_not_fits: Annotated[
        bool, typer.Option("--fail-if-not-fits", help=f"Exit with {NOT_FITTING} unless it is known to fit.")
    ] = False,
    cycle: Cycle = None,
    rank: Rank = None,
    session: Session = None,
    output: Output = OutputFormat.text,
    table: TableName = None,
) -> None:
    """Plan the memory of another configuration.

    Of a run that was recorded with profile_memory=True: whether it fits, the largest batch, the step time.
    """
    if tensor_parallel is not None:
        if shard not in (None, Shard.tp) or gpus not in (1, tensor_parallel):
            refuse("--tensor-parallel names the way to share and the number of GPUs: leave out --shard and --gpus.")
        shard, gpus = Shard.tp, tensor_parallel
    chosen = choose(source, cycle, rank, None, None, session)
    try:
        request = PlanRequest(
            batch_size=batch_size,
            sequence_length=sequence_length,
            image_size=image_size,
            precision=precision.value if precision else None,
            optimizer=optimizer,
            checkpoint=() if checkpoint == "auto" else _modules(checkpoint),
            layers=dict(map(_layers, layers or ())),
            set_to_none=set_to_none,
            accumulate=accumulate,
            offload=_modules(offload),
            relu=relu.value if relu else None,
            shard=shard.value if shard else None,
            gpus=gpus,
            expandable_segments=expandable_segments,
            gpu=gpu,
            memory_bytes=None if memory is None else _bytes(memory),
        )
        page = plan_page(chosen.view, chosen.ref, request, checkpoint_to_fit=checkpoint == "auto")
    except PlanError as error:
        refuse(f"{source}: {error}")
    print_page(page, output, table, text=lambda: _print_text(page))
    if fail_if_not_fits and not page.fits:
        raise typer.Exit(NOT_FITTING)


def _modules(text: str) -> tuple[str, ...]:
    return () if text == "none" else tuple(one.strip() for one in text.split(",") if one.strip())


def _layers(text: str) -> tuple[str, int]:
    found = re.fullmatch(r"(.+)=\+?(\d+)", text)
    if found is None:
        raise PlanError(f"--layers takes MODULE=N, not {text!r}.")
    return found[1], int(found[2])


def _bytes(text: str) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if found is None or found[2].upper() not in _UNITS:
        raise PlanError(f"--memory takes a size with its unit, such as 24GiB or 80GB, not {text!r}.")
    return round(float(found[1]) * _UNITS[found[2].upper()])


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
