"""``tb-dlprof oom``: why an allocation of GPU memory failed, and what would have fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.open_profile import choose
from tb_dlprof_plugin.cli.options import Limit, Printing
from tb_dlprof_plugin.cli.printing import UNKNOWN, print_page
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.pages.out_of_memory import OomActivations, OomChange, OomHolder, OomPage, oom_page, view_for
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.memory_snapshot.oom_file import read_oom

_BARS = " ▁▂▃▄▅▆▇█"
_WIDTH = 80


@takes_requests
def oom(
    file: Annotated[
        Path,
        typer.Argument(help="What the hook wrote (tb_dlprof_oom...json), its folder, or a memory snapshot of torch."),
    ],
    run: Annotated[
        Path | None,
        typer.Option(help="A run that recorded memory; by default the one in the file's folder.", metavar="RUN"),
    ] = None,
    limit: Limit = 15,
    *,
    printing: Printing,
) -> None:
    """Explain a CUDA out-of-memory error.

    Who held what when it failed, and the smallest change that would have fitted. The file comes from `run --oom`,
    profile(..., oom=True), or torch.cuda.memory._dump_snapshot; it is read in a process with limits.
    """
    try:
        found = read_oom(file)
    except TraceError as error:
        refuse(error)
    if run is not None:
        view, name = _recorded(run), str(run)
    else:
        view, name = view_for(file if file.is_dir() else file.parent)
    page = oom_page(found, view, name)
    print_page(page, printing, text=lambda: _print_text(page, limit))


def _recorded(run: Path) -> ProfileView | None:
    return choose(run).view


def _print_text(page: OomPage, limit: int) -> None:
    say(page.headline, "")
    for line in page.where[:limit]:
        say(f"  at {line}")
    if page.where:
        say()
    print_rows(OomHolder, page.rows[:limit])
    say()
    if page.activations:
        print_rows(OomActivations, page.activations[:limit])
        say()
    for stack in page.stacks[:limit]:
        say(f"{byte_size(stack.bytes)} in {stack.blocks:,} blocks:", *(f"  {line}" for line in stack.stack))
    if not page.stacks and page.sizes:
        sizes = ", ".join(f"{one.blocks:,} of {byte_size(one.size)}" for one in page.sizes[:limit])
        say(f"Blocks without a name: {sizes}.")
    if page.over_time_bytes:
        say(f"Allocated over the recorded history: {_drawn(page.over_time_bytes)}")
    say(f"Unexplained: {page.unexplained_percent:.1f} % of {byte_size(page.allocated_bytes)}.", "")
    for process in page.processes:
        size = UNKNOWN if process.bytes is None else byte_size(process.bytes)
        say(f"Process {process.pid}{' (this training)' if process.own else ''} on the GPU: {size}")
    if page.changes:
        say("What would have fitted", "")
        print_rows(OomChange, page.changes)
    if page.cannot_say:
        say(f"What would have fitted: cannot say: {page.cannot_say}")
    for note in page.notes:
        say(f"Note: {note}")


def _drawn(values: list[int]) -> str:
    width = max(1, -(-len(values) // _WIDTH))
    highest = max(*values, 1)
    peaks = [max(values[at : at + width]) for at in range(0, len(values), width)]
    return "".join(_BARS[round(peak / highest * (len(_BARS) - 1))] for peak in peaks)
