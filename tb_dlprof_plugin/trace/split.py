"""Cuts the JSON of a trace into head, runs of whole events, and rest, without parsing it.

A run that ends between "}," and "{" and decodes as a list ends between two events: inside a string or a nested value it
would not decode. So a cut is a guess that decoding proves, and a trace of any size needs the memory of one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tb_dlprof_plugin.trace.damage import Damage
from tb_dlprof_plugin.trace.errors import TraceError

LARGEST_EVENT_BYTES = 1 << 26
_LARGEST_HEAD_BYTES = 1 << 26
_CUTS_TRIED = 3
_WINDOW_BYTES = 1 << 16

_EVENTS_BEGIN = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST_BEGINS = re.compile(rb"\s*\[")
BETWEEN_EVENTS = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp|sf|tts)"\s*:)')
"""Where one event ends and the next begins, by the first key of an event."""


def open_events(source: Path, blocks: Iterator[bytes]) -> tuple[bytes, bytes]:
    """Reads up to the first event: the text before it, ending in "[", and what was read of the events.

    Raises:
        TraceError: the file is empty, or is no trace.
    """
    text = b""
    for block in blocks:
        text += block
        # A key may lie across two blocks: look again from a little before.
        found = _LIST_BEGINS.match(text) or _EVENTS_BEGIN.search(text)
        if found:
            return text[: found.end()], text[found.end() :]
        if len(text) > _LARGEST_HEAD_BYTES:
            break
    if not text.strip():
        raise TraceError(f"{source} is empty; the training process probably ended before the trace was written.")
    if not text.lstrip().startswith(b"{"):
        raise TraceError(f"{source} is not JSON; pass the *.pt.trace.json[.gz] file that torch.profiler wrote.")
    raise TraceError(
        f"{source} is JSON but not a PyTorch profiler trace (it has no traceEvents); "
        "pass the *.pt.trace.json[.gz] file that torch.profiler wrote."
    )


def event_runs(
    text: bytes,
    blocks: Iterator[bytes],
    accept: Callable[[bytes], bool],
    repair: Callable[[bytes], object],
    damage: Damage,
) -> bytes:
    """Hands on all runs of events but the last and returns the rest of the file.

    Args:
        text: what was already read behind the opening bracket.
        blocks: the rest of the file.
        accept: takes a JSON list of events; False where it does not decode.
        repair: takes a run of events, without brackets, that no cut makes decodable.
        damage: is told of an event too large to be one.
    """
    for block in blocks:
        if not text:
            text = block
            continue
        # What is held is cut, not what was just read: the last run must reach the end of the file.
        cuts = _cuts(text)
        for cut in cuts:
            if accept(b"".join((b"[", memoryview(text)[: cut.start() + 1], b"]"))):
                text = text[cut.end() :] + block
                break
        else:
            if cuts:
                repair(text[: cuts[0].start() + 1])
                text = text[cuts[0].end() :] + block
            elif len(text) > LARGEST_EVENT_BYTES:
                damage.add("oversized")
                return b""
            else:
                text += block
    return text


def _cuts(text: bytes) -> list[re.Match[bytes]]:
    """The last places between two events, the last first."""
    window = _WINDOW_BYTES
    while True:
        found = list(BETWEEN_EVENTS.finditer(text, max(0, len(text) - window)))
        if found or window >= len(text):
            return found[-_CUTS_TRIED:][::-1]
        window *= 16
