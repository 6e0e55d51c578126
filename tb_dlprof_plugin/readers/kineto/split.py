"""Cuts the JSON of a trace into head, runs of whole events, and rest, without parsing it.

A run that ends between "}," and "{" and decodes as a list ends between two events: inside a string or a nested value it
would not decode. So a cut is a guess that decoding proves, and a trace of any size needs the memory of one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tb_dlprof_plugin.readers.errors import UNDECODABLE, TraceError
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage

LARGEST_EVENT_BYTES = 1 << 26
_LARGEST_HEAD_BYTES = 1 << 26
_LARGEST_TAIL_BYTES = 1 << 26
_CUTS_TRIED = 3
_WINDOW_BYTES = 1 << 16
_OVERLAP_BYTES = 1 << 12  # a key or a cut may lie across two blocks

_EVENTS_BEGIN = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST_BEGINS = re.compile(rb"\[")
_BETWEEN_EVENTS = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|args|s|bp|sf|tts)"\s*:)')
"""Where one event ends and the next begins, by the first key of an event."""
_BETWEEN_OBJECTS = re.compile(rb'\}\s*,\s*(?=\{\s*")')
TRUNCATED = "Input data was truncated"
"""msgspec's message for JSON that ends too early."""
NO_TEXT = b" \t\r\n\0"
"""What a file may hold without holding any text: blanks, and the zeros that a crash of the machine leaves."""


def open_events(source: Path, blocks: Iterator[bytes], damage: Damage) -> tuple[bytes, bytes]:
    """Reads up to the first event: the text before it, ending in "[", and what was read of the events.

    Raises:
        TraceError: the file is empty, or is not a trace.
    """
    text = bytearray()
    searched = 0
    for block in blocks:
        text += block if text else block.lstrip(NO_TEXT)
        found = _LIST_BEGINS.match(text) or _EVENTS_BEGIN.search(text, searched)
        if found:
            return bytes(text[: found.end()]), bytes(text[found.end() :])
        searched = max(0, len(text) - _OVERLAP_BYTES)
        if len(text) > _LARGEST_HEAD_BYTES:
            break
    raise TraceError(f"{source} {_no_events(bytes(text), damage)}.")


def _no_events(text: bytes, damage: Damage) -> str:
    """Why there are no events in a file that has this text, or begins with it."""
    reasons = damage.reasons()
    again = "record it again, or copy it again"
    right_file = "pass the *.pt.trace.json[.gz] file that torch.profiler wrote"
    if len(text) > _LARGEST_HEAD_BYTES:
        return f"has no traceEvents in its first {_LARGEST_HEAD_BYTES >> 20} MiB; {right_file}"
    text = text.strip(NO_TEXT)
    if reasons:
        return f"{reasons}, before the first event; {again}"
    if not text:
        return "is empty; the training process probably ended before the trace was written"
    if is_cut(text):
        return f"ends in the middle of the JSON, before the first event; {again}"
    return f"is not a PyTorch profiler trace; {right_file}"


def is_cut(text: bytes) -> bool:
    """Whether a text is the beginning of a JSON object, without its end."""
    try:
        msgspec.json.decode(text)
    except UNDECODABLE as error:
        return text.startswith(b"{") and str(error) == TRUNCATED
    return False


def event_runs(
    text: bytes,
    blocks: Iterator[bytes],
    accept: Callable[[bytes], bool],
    repair: Callable[[bytes], tuple[int, bool]],
    damage: Damage,
) -> tuple[bytes, bool]:
    """Passes on all runs of events but the last.

    Args:
        text: what was already read after the opening bracket.
        blocks: the rest of the file.
        accept: takes a JSON list of events; False where it does not decode.
        repair: reads a run of events, without brackets, that no cut makes decodable; returns how far it came, and
            whether the list of events ended there.
        damage: records an oversized event.

    Returns:
        The last run with all that follows it, and False; or, where the list ended before, what follows it, and True.
    """
    searched = 0
    for block in blocks:
        # The previous text is cut, not the block just read: the last run must reach the end of the file.
        cuts = _cuts(text, searched)
        for cut in cuts:
            if accept(b"".join((b"[", memoryview(text)[: cut.start() + 1], b"]"))):
                text, searched = text[cut.end() :] + block, 0
                break
        else:
            run_end = cuts[0].start() + 1 if cuts else 0
            stop, ended = repair(text[:run_end]) if cuts else (0, False)
            if cuts and stop == run_end and not ended:
                stop = cuts[0].end()
            if ended:
                return _tail(text[stop:] + block, blocks, damage), True
            if len(text) - stop > LARGEST_EVENT_BYTES:
                damage.add("oversized")
                return b"", False
            # Of an event that is not whole yet only new text is searched, unless part of it was read.
            searched = 0 if stop else max(0, len(text) - _OVERLAP_BYTES)
            text = text[stop:] + block
    return text, False


def cuts_of(run: bytes) -> list[re.Match[bytes]]:
    """All places between two events: those before a known key, or, where there are none, before any."""
    return list(_BETWEEN_EVENTS.finditer(run)) or list(_BETWEEN_OBJECTS.finditer(run))


def _tail(text: bytes, blocks: Iterator[bytes], damage: Damage) -> bytes:
    parts, size = [text], len(text)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > _LARGEST_TAIL_BYTES:
            damage.add("header_damaged")
            return b"}"
    return b"".join(parts)


def _cuts(text: bytes, searched: int) -> list[re.Match[bytes]]:
    """The last places between two events after ``searched``, the last first."""
    for between in (_BETWEEN_EVENTS, _BETWEEN_OBJECTS):
        window = _WINDOW_BYTES
        while True:
            begin = max(searched, len(text) - window)
            found = list(between.finditer(text, begin))
            if found:
                return found[-_CUTS_TRIED:][::-1]
            if begin == searched:
                break
            window *= 16
    return []
