"""``tb-dlprof info``: the events of a recording that were read, repaired, linked and orphaned."""

from __future__ import annotations

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.cli.page_command import page_command
from tb_dlprof_plugin.cli.printing import UNKNOWN, time
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.model.found_by import found_by_words
from tb_dlprof_plugin.pages.info import Info, info_page


@page_command(info_page, lambda page: rows_table(Info, [page]))
def info(page: Info) -> None:
    """Show what a recording contains and what is missing.

    Events, steps and kernels, how much of the kernel time is attributed to ops, and repairs.
    """
    for label, text in _lines(page):
        say(f"{label:<22}{text}")
    for note in page.notes:
        say(f"note: {note.text}" + (f" ({note.count})" if note.count is not None else ""))


def _lines(page: Info) -> list[tuple[str, str]]:
    read = UNKNOWN if page.events is None else f"{page.events:,}"
    lines = [
        ("trace file", page.trace_file or UNKNOWN),
        ("run", f"{page.run}, session {page.session}, rank {page.rank}, cycle {page.cycle}"),
        ("events", f"{read}, {UNKNOWN if page.repaired is None else f'{page.repaired:,}'} repaired"),
        ("steps", f"{page.steps} ({found_by_words(page.steps_found_by)})"),
        ("host calls", f"{page.calls:,} on {page.threads} threads"),
        ("memory events", f"{page.memory_events:,}"),
    ]
    if not page.gpus:
        return [*lines, ("GPU", "nothing ran on a GPU")]
    return [
        *lines,
        ("GPUs, streams", f"{', '.join(map(str, page.gpus))}; {page.streams}"),
        ("kernels", f"{page.kernels:,}, {time(page.kernel_time_ns)}"),
        ("  attributed to ops", _share(page.attributed_kernel_time_ns, page)),
        ("  orphan", f"{_share(page.orphan_kernel_time_ns, page)}, launched before the recording"),
        ("  unattributed", _share(page.unattributed_kernel_time_ns, page)),
        ("copies, sets", f"{page.copies:,}, {time(page.copy_time_ns)}; {page.sets:,}, {time(page.set_time_ns)}"),
    ]


def _share(part_ns: int, page: Info) -> str:
    return f"{time(part_ns)}" + (f" ({100 * part_ns / page.kernel_time_ns:.2f} %)" if page.kernel_time_ns else "")
