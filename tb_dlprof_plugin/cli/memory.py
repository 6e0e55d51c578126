"""``tb-dlprof memory``: the Memory page on the terminal."""

from __future__ import annotations

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Limit
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, print_table
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.direction import with_direction
from tb_dlprof_plugin.model.formatting import byte_size, duration
from tb_dlprof_plugin.pages.memory import DeviceOption, MemoryPage, memory_page
from tb_dlprof_plugin.pages.memory_tables import MemoryGroup
from tb_dlprof_plugin.pages.sentence import text_of
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
            say(page.how_to_record)
        return
    say(text_of(page.peak_parts), "")
    _print_figures(page)
    if page.not_attributed:
        _print_iterations(page, limit)
        say(f"{page.not_attributed}", "")
    else:
        _print_categories(page)
        _print_iterations(page, limit)
        _print_groups("Module", page.modules, limit)
        _print_groups("Op type", page.op_types, limit)
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
            "Peak allocated" + (" above the lowest moment" if figures.relative else ""),
            _share(figures.peak_allocated_bytes, figures.peak_allocated_percent),
        ),
        ("Peak reserved", _share(figures.peak_reserved_bytes, figures.peak_reserved_percent)),
        ("Fragmentation at the peak", _size(figures.fragmentation_bytes)),
        *_limits(page),
        ("Memory of the device", _size(figures.device_memory_bytes)),
        ("Growth per iteration", _change(figures.growth_bytes)),
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


def _print_categories(page: MemoryPage) -> None:
    print_table(
        (("Category", "left"), ("at the peak", "right"), ("share", "right"), ("own peak", "right")),
        [(c.label, _size(c.bytes), percent(c.percent), _size(c.own_peak_bytes)) for c in page.categories],
    )
    say()


def _print_iterations(page: MemoryPage, limit: int) -> None:
    print_table(
        (
            ("Iteration", "right"),
            ("peak allocated", "right"),
            ("peak reserved", "right"),
            ("growth", "right"),
            ("allocations", "right"),
        ),
        [
            (
                str(row.number),
                _size(row.peak_allocated_bytes),
                _size(row.peak_reserved_bytes),
                _change(row.growth_bytes),
                str(row.allocations),
            )
            for row in page.iterations[:limit]
        ],
    )
    say()


def _print_groups(heading: str, groups: list[MemoryGroup], limit: int) -> None:
    print_table(
        (
            (heading, "left"),
            ("at the peak", "right"),
            ("share", "right"),
            ("allocations", "right"),
            ("own peak", "right"),
        ),
        [
            (
                with_direction(group_name(row), row.direction),
                _size(row.bytes),
                percent(row.percent),
                "" if row.allocations is None else str(row.allocations),
                _size(row.own_peak_bytes),
            )
            for row in groups[:limit]
        ],
    )
    say()


def group_name(row: MemoryGroup) -> str:
    """A group's name, in brackets if it covers work without a name."""
    if row.kind == "before":
        return "(before the recording)"
    if row.kind == "held":
        return "(held between steps)"
    return "(outside every op)" if row.kind == "outside" else row.name or "(no module)"


def _print_allocations(page: MemoryPage, limit: int) -> None:
    print_table(
        (
            ("Largest allocations at the peak", "left"),
            ("direction", "left"),
            ("size", "right"),
            ("category", "left"),
            ("iteration", "right"),
            ("freed in", "left"),
            ("lived", "right"),
        ),
        [
            (
                row.op or (row.module or "(held between steps)" if row.id < 0 else "(outside every op)"),
                row.direction,
                _size(row.bytes),
                row.category.replace("_", " "),
                "" if row.iteration is None else str(row.iteration),
                row.freed or "not in the recording",
                "" if row.lifetime_ns is None else duration(row.lifetime_ns),
            )
            for row in page.rows[:limit]
        ],
    )
    if page.total_rows is not None and page.total_rows > limit:
        say("", f"{page.total_rows - limit} more; --limit prints more of each table.")


def _size(value: int | None) -> str:
    return UNKNOWN if value is None else byte_size(value)


def _change(value: int) -> str:
    return f"{'+' if value > 0 else ''}{byte_size(value)}"


def _share(value: int | None, share: float | None) -> str:
    return _size(value) + ("" if value is None or share is None else f" ({percent(share)})")
