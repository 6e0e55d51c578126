"""``tb-dlprof memory``: the Memory page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table
from tb_dlprof_plugin.cli.rows import print_rows
from tb_dlprof_plugin.cli.terminal import say, say_code
from tb_dlprof_plugin.model.direction import with_direction
from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.pages.memory import DeviceOption, MemoryIteration, MemoryPage, memory_page
from tb_dlprof_plugin.pages.memory_tables import MemoryAllocation, MemoryCategory, MemoryGroup
from tb_dlprof_plugin.pages.quantities import GPU_MEMORY, PEAK_ALLOCATED, PEAK_RESERVED
from tb_dlprof_plugin.pages.sentences import text_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.run_ref import RunRef


def _page(view: ProfileView, ref: RunRef, selection: Selection, device: DeviceOption = None) -> MemoryPage:
    try:
        return memory_page(view, ref, selection, device)
    except KeyError:
        refuse(f"{ref.run} holds no memory of device {device!r}; leave out --device")


@page_command(_page)
def memory(page: MemoryPage, limit: Limit = 15) -> None:
    """Show what fills the memory at its peak.

    By category, module and op; with the largest allocations, and the growth per step.
    """
    say(f"{page.headline}", "")
    if page.figures is None:
        if page.how_to_record:
            say_code(page.how_to_record)
        return
    say(text_of(page.peak_parts), "")
    _print_figures(page)
    if not page.not_attributed:
        print_rows(MemoryCategory, page.categories)
        say()
    print_rows(MemoryIteration, page.iterations[:limit], cells={"growth_bytes": lambda row: _change(row.growth_bytes)})
    say()
    if page.not_attributed:
        say(f"{page.not_attributed}", "")
    else:
        for heading, groups in (("Module", page.modules), ("Op type", page.op_types)):
            cells = {"name": lambda row: with_direction(group_name(row), row.direction)}
            print_rows(MemoryGroup, groups[:limit], headings={"name": heading}, cells=cells)
            say()
        _print_allocations(page, limit)
    if page.limits is not None and page.limits.unknown:
        say(f"Note: the limits are unknown: {page.limits.unknown}")
    for note in page.notes:
        say(f"Note: {note}")


def _print_figures(page: MemoryPage) -> None:
    figures = page.figures
    if figures is None:
        return
    rows = [
        (
            PEAK_ALLOCATED.label + (" above the lowest moment" if figures.relative else ""),
            _share(figures.peak_allocated_bytes, figures.peak_allocated_percent),
        ),
        (PEAK_RESERVED.label, _share(figures.peak_reserved_bytes, figures.peak_reserved_percent)),
        ("Fragmentation at the peak", _size(figures.fragmentation_bytes)),
        *_limits(page),
        (GPU_MEMORY.label if page.device != "cpu" else "Memory of the device", _size(figures.device_memory_bytes)),
        ("Growth per iteration", UNKNOWN if figures.growth_bytes is None else _change(figures.growth_bytes)),
    ]
    print_table((("Figure", "left"), ("", "right")), rows)
    say()


def _limits(page: MemoryPage) -> list[tuple[str, str]]:
    limits = page.limits
    if limits is None:
        return []
    return [
        ("Free at the peak in segments in use", _size(limits.holes_bytes)),
        ("Smallest limit that works", _size(limits.smallest_limit_bytes)),
        ("Limit without retries", _size(limits.without_retries_bytes)),
        ("Context, libraries, other processes", _size(limits.outside_bytes)),
    ]


def group_name(row: MemoryGroup) -> str:
    """A group's name, in brackets if it covers work without a name."""
    if row.kind == "before":
        return "(before the recording)"
    if row.kind == "held":
        return "(held between steps)"
    return "(outside every op)" if row.kind == "outside" else row.name or "(no module)"


def _print_allocations(page: MemoryPage, limit: int) -> None:
    cells = {"op": _allocated_by, "category": lambda row: row.category.replace("_", " ")}
    print_rows(MemoryAllocation, page.rows[:limit], headings={"op": "Largest allocations at the peak"}, cells=cells)
    if page.total_rows is not None and page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit prints more of each table.")


def _allocated_by(row: MemoryAllocation) -> str:
    return row.op or (row.module or "(held between steps)" if row.id < 0 else "(outside every op)")


def _size(value: int | None) -> str:
    return UNKNOWN if value is None else byte_size(value)


def _change(value: int) -> str:
    return f"{'+' if value > 0 else ''}{byte_size(value)}"


def _share(value: int | None, share: float | None) -> str:
    return _size(value) + ("" if value is None or share is None else f" ({percent(share)})")
