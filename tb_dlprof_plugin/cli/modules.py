"""``tb-dlprof modules``: the Modules page on the terminal, as an indented tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import percent, print_table
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.modules import ModuleRow, ModulesPage, modules_page

Depth = Annotated[int, typer.Option(min=0, help="Levels below the whole model in the text.")]

_HOW_TO = (
    "Record them with tb_dlprof_plugin.profile(logdir, model=model), or profile with with_stack=True to have them "
    "read from the Python stacks."
)
_NONE = "-"


@page_command(modules_page)
def modules(page: ModulesPage, sums: Sums, depth: Depth = 2, limit: Limit = 100) -> None:
    """Show the module tree by GPU time.

    With calls, forward and backward time, kernels, Tensor Core eligibility and use.
    """
    say(f"{page.headline} {sums.words}" if page.rows else page.headline)
    if not page.rows:
        say(page.remedy or _HOW_TO)
        return
    if page.from_stacks:
        say("Modules are identified by Python stack frames: class and number of the instance.")
    say()
    shallow = [row for row in page.rows if _level(row) <= depth]
    _print_tree(page, shallow[:limit], sums)
    if len(shallow) > limit:
        say("", f"{len(shallow) - limit} more of this depth; --limit {len(shallow)} prints all.")
    if len(page.rows) > len(shallow):
        deepest = max(map(_level, page.rows))
        say("", f"{len(page.rows) - len(shallow)} more are deeper; --depth {deepest} prints all.")


def _print_tree(page: ModulesPage, rows: list[ModuleRow], sums: Sums) -> None:
    unit = "GPU" if page.has_gpu else "CPU"
    columns: list[tuple[str, str]] = [("Module", "left"), ("calls", "right"), (f"{unit} time", "right")]
    columns += [("share", "right"), ("forward", "right"), ("backward", "right"), ("own", "right")]
    if page.has_gpu:
        columns += [("CPU time", "right"), ("kernels", "right"), ("TC eligible ops", "right"), ("using TC", "right")]
        columns += [("TC utilization", "right")]
    columns += [("op calls", "right")]
    lines = [(_label(page, row), row) for row in _in_tree_order(rows)]
    lines += [(f"outside modules: {row.role}", row) for row in page.outside]
    print_table(columns, [[label, *_cells(page.has_gpu, row, sums)] for label, row in lines])


def _in_tree_order(rows: Sequence[ModuleRow]) -> Iterator[ModuleRow]:
    """Depth-first order, siblings by falling time."""
    below: dict[str, list[ModuleRow]] = {}
    for row in rows:
        if row.path:
            below.setdefault(row.path.rpartition(".")[0], []).append(row)
    waiting = [row for row in rows if not row.path]
    while waiting:
        row = waiting.pop()
        yield row
        waiting.extend(reversed(below.get(row.path, ())))


def _level(row: ModuleRow) -> int:
    return row.path.count(".") + 1 if row.path else 0


def _label(page: ModulesPage, row: ModuleRow) -> str:
    return "  " * _level(row) + (row.path.rpartition(".")[2] or page.model)


def _cells(has_gpu: bool, row: ModuleRow, sums: Sums) -> list[str]:
    forward, backward, own = (
        (row.gpu_forward_ns, row.gpu_backward_ns, row.gpu_own_ns)
        if has_gpu
        else (row.cpu_forward_ns, row.cpu_backward_ns, row.cpu_own_ns)
    )
    cells = [
        _NONE if row.calls is None else sums.count(row.calls),
        sums.time(row.gpu_ns if has_gpu else row.cpu_ns),
        percent(row.gpu_percent if has_gpu else row.cpu_percent),
    ]
    cells += [_NONE if value is None else sums.time(value) for value in (forward, backward)]
    cells += [sums.time(own)]
    if has_gpu:
        cells += [
            sums.time(row.cpu_ns),
            sums.count(row.kernel_calls),
            _number(row.tc_eligible_ops),
            _number(row.tc_using_ops),
        ]
        cells += [_NONE if row.eligible_ns == 0 else percent(row.utilization_percent)]
    return [*cells, sums.count(row.op_calls)]


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)
