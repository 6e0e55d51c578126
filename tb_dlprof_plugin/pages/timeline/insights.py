"""What stands out in the iteration that the timeline shows: a few events, each with a short sentence."""

from __future__ import annotations

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.iterations import percent
from tb_dlprof_plugin.model.formatting import duration, share
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.names.compiled import COMPILED_REGION
from tb_dlprof_plugin.pages.timeline.event_lookup import TimelineSpot, places, spot
from tb_dlprof_plugin.pages.timeline.events import TimelineEvents
from tb_dlprof_plugin.pages.timeline.kinds import EventKind
from tb_dlprof_plugin.profile_view import ProfileView, Selection

_LEAST_PERCENT = 0.1
"""An event with a smaller share of the iteration does not stand out."""


_COMPILES = " (dynamo_timed)"


class Insight(msgspec.Struct, frozen=True):
    """One event and what stands out of it; ``percent`` is its share of the iteration."""

    title: str
    text: str
    spot: TimelineSpot
    percent: float


def insights(view: ProfileView, one: Selection, events: TimelineEvents) -> list[Insight]:
    """The longest gap, kernel, collective and copy, the longest wait of the CPU, and the DataLoader, by falling time.

    Args:
        view: the recording.
        one: the iteration that is shown.
        events: its events.
    """
    gpu, calls = places(events, "g"), places(events, "c")
    memory = _of_kind(events, gpu, "memory")
    kernels = np.setdiff1d(gpu, memory)
    collective = view.launch_is_collective[events.row[kernels]]
    found = {
        "GPU idle": places(events, "i"),
        "Longest kernel": kernels[~collective],
        "Longest collective": kernels[collective],
        "Longest copy or set": memory,
        "CPU waits for the GPU": _of_kind(events, calls, "wait"),
        "Data loading": _of_kind(events, calls, "dataloader"),
    }
    whole = int(view.profile.iterations.duration_ns[one.first])
    result = []
    for title, rows in found.items():
        own = rows[events.own[rows]]
        if not len(own):
            continue
        at = int(own[np.argmax(events.duration_ns[own])])
        event = spot(events, at)
        part = percent(event.duration_ns, whole) or 0.0
        if part >= _LEAST_PERCENT:
            text = f"{duration(event.duration_ns)} ({share(part, 1)}), {event.label}"
            result.append(Insight(title, text, event, part))
    result += _of_compilation(view, events, calls, whole)
    return sorted(result, key=lambda insight: -insight.percent)


def _of_compilation(view: ProfileView, events: TimelineEvents, calls: Ints, whole: int) -> list[Insight]:
    """The longest time between two regions of torch.compile where graphs break, and the longest compilation."""
    profile = view.profile
    calls = calls[events.own[calls]]
    names = profile.ops.name[profile.calls.op[events.row[calls]]]
    texts = [profile.strings[name] for name in names.tolist()]
    regions = calls[np.array([text.startswith(COMPILED_REGION) for text in texts], dtype=np.bool_)]
    regions = regions[np.lexsort((events.start_ns[regions], events.track[regions]))]
    result = []
    breaks = profile.facts.graph_breaks
    between = events.start_ns[regions][1:] - (events.start_ns[regions] + events.duration_ns[regions])[:-1]
    between = np.where(np.diff(events.track[regions]) == 0, between, 0)
    if breaks and len(between) and between.max() > 0:
        gap, follows = int(between.max()), int(regions[1:][np.argmax(between)])
        part = percent(gap, whole) or 0.0
        text = f"{duration(gap)} ({share(part, 1)}) before this region, {breaks[0].place}"
        result.append(Insight("Graph break", text, spot(events, follows), part))
    compiling = calls[np.array([text.endswith(_COMPILES) for text in texts], dtype=np.bool_)]
    if len(compiling):
        event = spot(events, int(compiling[np.argmax(events.duration_ns[compiling])]))
        part = percent(event.duration_ns, whole) or 0.0
        result.append(Insight("Compilation", f"{duration(event.duration_ns)} ({share(part, 1)})", event, part))
    return [one for one in result if one.percent >= _LEAST_PERCENT]


def _of_kind(events: TimelineEvents, rows: Ints, kind: EventKind) -> Ints:
    wanted = np.array([of == kind for of in events.kinds], dtype=np.bool_)
    found: Ints = rows[wanted[events.name[rows]]]
    return found
