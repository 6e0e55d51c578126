"""Traces whose fields are not what they should be, and what must hold of all that is shown of them.

`tests/support/broken_traces.py` breaks the text of a trace; here it stays JSON, and fields, events and times are wrong.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import logging
import random
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from support import all_answers
from support.broken_traces import check, recorded, sound_traces

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import decode, encode
from tb_dlprof_plugin.store.reclassify import reclassified

Event = dict[str, Any]
LONGEST_S = 2.0
"""Of the processor, that one answer about a trace of 150 events may take."""
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, -0.5, 0.5, 7, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1,
    -(2**63), 10**30, 1e18, 1e300, -1e300, 3.5e14, "", "7", "-1", "x", "\u0000", "aten::mm", "ProfilerStep#3",
    "stream 7", "\x1b[2J", "\u202e", [], {}, [[]], [[[]]], [1], [1, 2, 3], [[1, 2], [3, 4]], [["float"]], ["float"],
    ["float", 7], [None], {"a": 1}, [2**63 - 1] * 3, [[2**62, 2**62]], [-1, -1, -1], [0, 0, 0], [0.5, 0.5, 0.5],
)  # fmt: skip
_FIELDS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")
_CATEGORIES = ("cpu_op", "kernel", "cuda_runtime", "gpu_memcpy", "user_annotation", "python_function", "overhead", "")
_NAMES = (
    "aten::convolution", "aten::addmm", "Optimizer.step#SGD.step", "ProfilerStep#1", "cudaLaunchKernel",
    "cudaDeviceSynchronize", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Memcpy HtoD", "[memory]",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nvjet_sm90_hsh_128x64_64x8_2x1_v_bz_TNN",
)  # fmt: skip


def _field(events: list[Event], source: random.Random) -> None:
    """A field of one event, or of all that have it, gets another value."""
    event = source.choice(events)
    args = event.get("args")
    if isinstance(args, dict) and args and source.random() < 0.6:
        key, value = source.choice(list(args)), source.choice(VALUES)
        everywhere = source.random() < 0.3
        for one in events if everywhere else [event]:
            if isinstance(one.get("args"), dict) and key in one["args"]:
                one["args"][key] = value
        return
    event[source.choice(_FIELDS)] = source.choice(VALUES)


def _left_out(events: list[Event], source: random.Random) -> None:
    """A field, an event, or all events of a category are missing."""
    event = source.choice(events)
    how = source.random()
    if how < 0.3:
        event.pop(source.choice(_FIELDS), None)
    elif how < 0.6:
        events.remove(event)
    else:
        events[:] = [one for one in events if one.get("cat") != event.get("cat")] or [event]


def _times(events: list[Event], source: random.Random) -> None:
    """Events overlap their neighbours, last for hours, not at all, or begin elsewhere."""
    for event in source.sample(events, min(len(events), source.choice((1, 3, 10)))):
        for key in ("ts", "dur"):
            if isinstance(event.get(key), (int, float)) and source.random() < 0.7:
                change = source.choice((0, 0.5, 0.999, 1.001, 1.5, 3, 1000, 1e6))
                event[key] = event[key] * change if key == "dur" else event[key] + (change - 1) * 100


def _aligned(events: list[Event], source: random.Random) -> None:
    """All begin, or all last, alike."""
    key = source.choice(("ts", "dur"))
    values = [event[key] for event in events if isinstance(event.get(key), (int, float))] or [0]
    value = source.choice((*values[:5], 0))
    for event in events:
        if key in event and source.random() < 0.8:
            event[key] = value


def _double(events: list[Event], source: random.Random) -> None:
    """An event comes again, with other times or on another thread."""
    for _ in range(source.choice((1, 5, 20))):
        again = dict(source.choice(events))
        if isinstance(again.get("ts"), (int, float)):
            again["ts"] += source.choice((0, 1, -1, 50))
        if source.random() < 0.3:
            again["tid"] = source.choice(VALUES)
        events.insert(source.randrange(len(events) + 1), again)


def _kind(events: list[Event], source: random.Random) -> None:
    """An event is of another kind or has another name."""
    for event in source.sample(events, min(len(events), source.choice((1, 2, 10)))):
        if source.random() < 0.5:
            event["cat"] = source.choice(_CATEGORIES)
        else:
            event["name"] = source.choice(_NAMES)


MUTATIONS: tuple[Callable[[list[Event], random.Random], None], ...] = (
    _field, _field, _field, _left_out, _times, _times, _aligned, _double, _kind,
)  # fmt: skip


def mutated(document: Any, source: random.Random) -> Any:
    """A copy of a trace with a few mutations."""
    result = json.loads(json.dumps(document))
    events = [one for one in (result["traceEvents"] if isinstance(result, dict) else result) if isinstance(one, dict)]
    for _ in range(source.choice((1, 1, 2, 3, 6))):
        if events:
            source.choice(MUTATIONS)(events, source)
    if isinstance(result, dict):
        if source.random() < 0.15:
            result[source.choice([key for key in result if key != "traceEvents"] or ["x"])] = source.choice(VALUES)
        if source.random() < 0.1 and isinstance(devices := result.get("deviceProperties"), list) and devices:
            device = source.choice(devices)
            if isinstance(device, dict):
                device[source.choice(list(device) or ["id"])] = source.choice(VALUES)
        result["traceEvents"] = events
        return result
    return events


@functools.cache
def documents(events: int, only: tuple[str, ...] = ()) -> list[Any]:
    """Recorded traces that are sound JSON, by default all, each with at most so many of its events."""
    found = []
    for text in sound_traces(events, only).values():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def first_steps(events: int, only: tuple[str, ...] = ()) -> Iterator[Any]:
    """Recorded traces, by default all, with their first events instead of some of all: whole steps of short ones."""
    for path in recorded(only).values():
        try:
            document = json.loads(gzip.decompress(path.read_bytes()))
        except ValueError:
            continue
        kept = document["traceEvents"] if isinstance(document, dict) else document
        kept = sorted((one for one in kept if "ts" in one), key=lambda one: float(one["ts"]))[:events]
        yield document | {"traceEvents": kept} if isinstance(document, dict) else kept


@functools.cache
def sound_view() -> ProfileView:
    """The view of a sound trace, to compare with."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sound.json"
        path.write_bytes(sound_traces(400, ("cuda_training",))["cuda_training"])
        profile = check(path)
    assert isinstance(profile, Profile)
    return ProfileView(profile)


def questions(view: ProfileView, path: Path, with_commands: bool) -> Iterator[tuple[all_answers.Question, Any]]:
    """Asks everything about a view: each question, and its answer or the exception that it raised."""
    answered: dict[str, Any] = {}
    for group in (
        lambda: all_answers.pages(view),
        lambda: all_answers.parts(view, answered),
        lambda: all_answers.reports(view),
        lambda: all_answers.together(view, sound_view()),
        *([lambda: all_answers.commands(view, path)] if with_commands else []),
    ):
        try:
            for question in group():
                began = time.process_time()
                try:
                    answer = all_answers.ask(question)
                except Exception as error:
                    answer = error
                if (took := time.process_time() - began) > LONGEST_S:
                    answer = TimeoutError(f"takes {took:.1f} s")
                if isinstance(answer, dict):
                    answered[question[0]] = answer
                yield question, answer
        except Exception as error:
            yield ("together", lambda: None), error


def faults(path: Path, with_commands: bool = False) -> Iterator[str]:
    """What is wrong with all that is shown of a trace; nothing where it is refused with one sentence."""
    try:
        profile = check(path)
        if isinstance(profile, str):
            return
        view = ProfileView(reclassified(decode(encode(profile))))
    except Exception as error:
        yield f"reading: {where(error)}"
        return
    yield from faults_of(view, path, with_commands)


def faults_of(
    view: ProfileView, path: Path, with_commands: bool = False, asked_for: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """What is wrong with all that is shown of a view; ``path`` is a file that is there.

    ``asked_for`` gets the name of each question.
    """
    logged: list[str] = []
    with _logged(logged):
        asked = list(questions(view, path, with_commands))
    yield from dict.fromkeys(logged)
    for (name, _), answer in asked:
        asked_for(name)
        if isinstance(answer, Exception):
            yield f"{name}: {where(answer)}"
        else:
            for wrong in all_answers.wrong_shares(answer, most=all_answers.most_printed(name)):
                yield f"{name}: share {wrong}"


@contextlib.contextmanager
def _logged(into: list[str]) -> Iterator[None]:
    """Takes what the product logs instead of raising, such as a rule that fails."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            error = record.exc_info and record.exc_info[1]
            into.append(f"{record.getMessage()}: {where(error) if isinstance(error, Exception) else ''}")

    logger, handler = logging.getLogger("tb_dlprof_plugin"), Handler()
    logger.addHandler(handler)
    before, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


def where(error: Exception) -> str:
    """The kind of an error, the innermost line of ours that it went through, and its text."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "tb_dlprof_plugin" in frame.filename]
    at = own[-1] if own else traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(at.filename).name}:{at.lineno} {at.name}: {error}".splitlines()[0][:200]
