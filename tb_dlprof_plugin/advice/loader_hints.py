"""What to change about a DataLoader, in sentences: of the rules about loading and of the DataLoader page."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.metrics.loader import (
    LIMITS,
    LoaderForecast,
    SlowPart,
    loader_forecast,
    memory_of,
    slow_items,
    slow_part,
    waiting_share,
)
from tb_dlprof_plugin.model.formatting import byte_size, duration, share
from tb_dlprof_plugin.profile_view import ProfileView


def loader_hints(view: ProfileView) -> list[str]:
    """All of them; none where the step does not wait for its loader, or where the workers' side is not known."""
    forecast, part, waits = loader_forecast(view), slow_part(view), waiting_share(view)
    if forecast is None or part is None or waits is None or waits < LIMITS:
        return []
    return [text for text in (workers_text(view, forecast), part_text(view, part), order_text(forecast)) if text]


def workers_text(view: ProfileView, forecast: LoaderForecast) -> str:
    """How many workers to use."""
    best, now = forecast.best, forecast.now
    if best.workers <= now.workers:
        return "More workers do not help: make each batch cheaper."
    if best.ns >= (1 - LIMITS) * now.ns:
        return ""
    memory = memory_of(view, best.workers)
    held = f" They hold about {byte_size(memory)}." if memory is not None else ""
    return (
        f"Use {best.workers} worker{'s' if best.workers != 1 else ''}: the step takes {duration(best.ns)} "
        f"({duration(best.low_ns)} to {duration(best.high_ns)}) in place of {duration(now.ns)}.{held}"
    )


def part_text(view: ProfileView, part: SlowPart) -> str:
    """What to do about the part of loading that costs most."""
    slow = slow_items(view)
    of = f"{share(100 * part.share, 0)} of the time of a batch"
    if part.kind == "transform":
        return f"The transform {part.name} takes {of}: make it cheaper, or apply it once and keep the result."
    if part.kind == "collate":
        return f"{part.name or 'collate_fn'} takes {of}: stack tensors of one size, or pad less."
    if part.kind == "tensors":
        tensors = int(np.median(view.profile.loader_batches.tensors))
        return f"Handing over {tensors} tensors takes {of}: pack them into few, such as one per data type."
    if part.kind == "slow items" and slow is not None:
        one_in = round(slow.samples / slow.count)
        where = "" if slow.slowest is None else f"; the slowest is {slow.slowest}"
        return f"One item in {one_in} takes {slow.times:.0f} times as long as the others, and {of}{where}."
    return f"Reading items takes {of}: read less, or from a faster disk, and prepare once what is the same each time."


def order_text(forecast: LoaderForecast) -> str:
    """What batches in another order gain; "" where the intervals do not tell."""
    later = forecast.unordered
    if later is None or later.high_ns > forecast.now.low_ns or later.ns > (1 - LIMITS) * forecast.now.ns:
        return ""
    return (
        f"With in_order=False the step takes {duration(later.ns)} in place of {duration(forecast.now.ns)}: batches are "
        "then given as they come, in another order."
    )
