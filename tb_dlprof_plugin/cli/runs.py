"""``tb-dlprof runs``: any number of runs in one table, or a row for each model before and after mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Printing, Sources
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_page, print_table, time
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.run_list import named_run, read_runs, report_failed
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import interval
from tb_dlprof_plugin.pages.by_model import ByModelPage, ModelRow, ModelSide, by_model_page
from tb_dlprof_plugin.pages.quantities import GPU_BUSY, STEP, TENSOR_CORE_UTILIZATION
from tb_dlprof_plugin.pages.runs import BaseOption, ManyRunsPage, RunRow, many_runs_page


@takes_requests
def runs(
    sources: Sources,
    base: BaseOption = None,
    by_model: Annotated[
        bool, typer.Option("--by-model", help="A row per model: before and after mixed precision, and what to do next.")
    ] = False,
    *,
    printing: Printing,
) -> None:
    """List runs in one table, each compared with its base.

    Step time, speedup and its noise, utilization, memory and the first advice.
    """
    if by_model and base is not None:
        refuse("--by-model uses each model's own base; leave out --base or --by-model")
    recorded, failed = read_runs(sources)
    report_failed(failed)
    if by_model:
        models = by_model_page(recorded, failed)
        print_page(models, printing, lambda: _print_models(models))
        return
    page = many_runs_page(recorded, named_run(recorded, base) if base else None, failed)
    print_page(page, printing, lambda: _print_runs(page))


def _print_runs(page: ManyRunsPage) -> None:
    say(f"{page.headline}", "")
    several = len({row.gpu for row in page.rows}) > 1
    with_energy = any(row.joules_per_step is not None for row in page.rows)
    left_out = (() if several else ("gpu",)) + (() if with_energy else ("joules_per_step",))
    print_rows(RunRow, page.rows, without=left_out, cells=_CELLS)
    say("", f"{page.note}")
    for why in dict.fromkeys(row.no_base for row in page.rows if row.no_base):
        names = [row.ref.run for row in page.rows if row.no_base == why]
        say(f"Without a base, because {why}: {', '.join(names)}.")


def _step(step_ns: int, source: str) -> str:
    if source == "whole":
        return "no steps"
    return f"~{time(step_ns)}" if source == "simulated" else time(step_ns)


def _noise(low: float | None, high: float | None, change: str) -> str:
    if low is None or high is None:
        return UNKNOWN
    return interval(low, high, "{:.2f}".format) + (", within noise" if change == "within noise" else "")


def _speedup(row: RunRow) -> str:
    return "–" if row.speedup is None else f"{row.speedup:.2f}×" + (" a sample" if row.by_samples else "")


def _recorded(row: RunRow) -> str:
    return time(row.recorded_ns) + ("" if row.deviation_ns is None else f" ± {time(row.deviation_ns)}")


_CELLS: dict[str, Callable[[RunRow], str]] = {
    "ref": lambda row: row.ref.run,
    "step_ns": lambda row: _step(row.step_ns, row.step_source),
    "speedup": _speedup,
    "change": lambda row: "–" if row.speedup is None else _noise(row.low, row.high, row.change),
    "base": lambda row: "is the base" if row.base == row.ref.run else row.base or "none",
    "recorded_ns": _recorded,
    "advice": lambda row: row.advice.problem if row.advice else "–",
}


_BEFORE_AND_AFTER = (GPU_BUSY, TENSOR_CORE_UTILIZATION, STEP)


def _print_models(page: ByModelPage) -> None:
    say(f"{page.headline}", "")
    print_table(
        (
            ("Model", "left"), ("batch", "right"), ("before", "left"), ("after", "left"),
            *((f"{one.label} {side}", "right") for one in _BEFORE_AND_AFTER for side in ("before", "after")),
            ("speedup", "right"), ("95 %", "left"),
        ),
        [_model_cells(row) for row in page.rows],
    )  # fmt: skip
    say()
    for row in page.rows:
        changes = f" ({'; '.join(row.changes)})" if row.changes else ""
        say(f"{_model(row)}{changes}: {row.recommendation}")


def _model_cells(row: ModelRow) -> tuple[str, ...]:
    return (
        row.model,
        UNKNOWN if row.batch_size is None else str(row.batch_size),
        _precision(row.before),
        _precision(row.after),
        *(percent(side.gpu_utilization) if side else "-" for side in (row.before, row.after)),
        *(percent(side.tensor_core_utilization) if side else "-" for side in (row.before, row.after)),
        *(_step(side.step_ns, side.step_source) if side else "-" for side in (row.before, row.after)),
        "-" if row.speedup is None else f"{row.speedup:.2f}",
        "" if row.speedup is None else _noise(row.low, row.high, row.change),
    )


def _model(row: ModelRow) -> str:
    return row.model if row.batch_size is None else f"{row.model}, batch {row.batch_size}"


def _precision(side: ModelSide | None) -> str:
    return "not recorded" if side is None else side.precision or UNKNOWN
