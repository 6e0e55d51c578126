"""``tb-dlprof modules``: the Modules page on the terminal, as an indented tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.sums import Sums
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.pages.modules import ModuleRow, ModulesPage, modules_page

Depth = Annotated[int, typer.Option(min=0, help="Levels below the whole model in the text.")]

_HOW_TO = (
    "Record them with tb_dlprof_plugin.profile(logdir, model=model), or profile with with_stack=True to have them "
    "read from the Python stacks."
)


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
    lines = [*_in_tree_order(rows), *page.outside]
    print_rows(ModuleRow, lines, sums=sums, has_gpu=page.has_gpu, cells={"path": lambda row: _label(page, row)})


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
    if row.role is not None:
        return f"outside modules: {row.role}"
    return "  " * _level(row) + (row.path.rpartition(".")[2] or page.model)
