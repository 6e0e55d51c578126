"""What to change about a DataLoader, in sentences: of the rules about loading and of the DataLoader page."""

from __future__ import annotations

from tb_dlprof_plugin.metrics.loader.batches import LIMITS, loader_recording, median_known, memory_of, waiting_share
from tb_dlprof_plugin.metrics.loader.forecast import LoaderForecast, loader_forecast
from tb_dlprof_plugin.metrics.loader.parts import SlowPart, slow_items, slow_part
from tb_dlprof_plugin.metrics.loader.work import loader_work
from tb_dlprof_plugin.model.formatting import byte_size, duration, share
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate


def loader_hints(view: ProfileView) -> list[str]:
    """All of them; but for starts, none where the step does not wait for its loader, or its stages are not known."""
    forecast, part, waits = loader_forecast(view), slow_part(view), waiting_share(view)
    found = []
    if part is not None and waits is not None and waits >= LIMITS:
        if forecast is not None:
            found += [workers_text(view, forecast), order_text(forecast)]
        found += [part_text(view, part), unpickle_text(view)]
    return [text for text in (*found, start_text(view)) if text]


def workers_text(view: ProfileView, forecast: LoaderForecast) -> str:
    """How many workers to use."""
    best, now = forecast.best, forecast.now
    if best.workers <= now.workers:
        return "More workers do not help: make each batch cheaper."
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
        tensors = median_known(view.profile.loader_batches.tensors)
        return f"Handing over {tensors} tensors takes {of}: pack them into few, such as one per data type."
    if part.kind == "slow items" and slow is not None:
        one_in = round(slow.samples / slow.count)
        where = "" if slow.slowest is None else f"; the slowest is {slow.slowest}"
        return f"One item in {one_in} takes {slow.times:.0f} times as long as the others, and {of}{where}."
    return f"Reading items takes {of}: read less, or from a faster disk, and prepare once what is the same each time."


def order_text(forecast: LoaderForecast) -> str:
    """What batches in another order gain; "" where that is not certain."""
    later = forecast.unordered
    if later is None:
        return ""
    if later.high_ns > forecast.now.low_ns or later.ns > (1 - LIMITS) * forecast.now.ns:
        return ""
    return (
        f"With in_order=False the step takes {duration(later.ns)} in place of {duration(forecast.now.ns)}: batches are "
        "then given as they come, in another order."
    )


def unpickle_text(view: ProfileView) -> str:
    """What a thread that pins takes off the training's; "" where that is little, or without a GPU."""
    recording, work = loader_recording(view), loader_work(view)
    if recording is None or work is None or not recording.workers or recording.pins or not view.profile.has_gpu:
        return ""
    unpickle_ns = float((work.unpickle + work.unpickle_wait).mean())
    if unpickle_ns < LIMITS * step_estimate(view, view.selection()).ns:
        return ""
    return (
        f"The training's thread takes {duration(unpickle_ns)} of each step to make tensors of what the workers send: "
        "with pin_memory=True another thread does it."
    )


def start_text(view: ProfileView) -> str:
    """What keeping the workers saves of an epoch; "" where that is little, or not known."""
    recording, loader = loader_recording(view), view.profile.facts.dataloader
    if recording is None or loader is None or loader.persistent_workers is not False:
        return ""
    first_ns, step_ns = recording.first_batch_ns, step_estimate(view, view.selection()).ns
    if not recording.workers or not loader.batches or first_ns is None or step_ns <= 0:
        return ""
    part = first_ns / (first_ns + loader.batches * step_ns)
    if part < LIMITS:
        return ""
    how = f" by {recording.start_method}" if recording.start_method else ""
    return (
        f"The first batch comes {duration(first_ns)} after the workers are started{how}: {share(100 * part, 0)} of an "
        f"epoch of {loader.batches} batches. With persistent_workers=True they start once."
    )
