"""A field of an event that is not what it should be is as if absent, whichever it is and in however many events."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.kineto_file import read_kineto
from support.marks import long

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.kineto.json_recovery import stream
from tb_dlprof_plugin.readers.kineto.records import Args, Complete, MemoryArgs

TRACES = Path(__file__).parents[1] / "traces"
Event = dict[str, Any]
_ODD: tuple[Any, ...] = ([[7]], {"a": 1}, -0.5, True)
_LISTS = ("Input Dims", "Input dims", "Input type")


@pytest.fixture(scope="module")
def recorded() -> Any:
    """Ops, launches, kernels and memory of a training."""
    found: list[Event] = []
    for name in ("cuda_training", "hook_amp_bf16", "cpu_memory"):
        document = json.loads(gzip.decompress((TRACES / f"{name}.pt.trace.json.gz").read_bytes()))
        found += document["traceEvents"][:400] + [e for e in document["traceEvents"] if e.get("cat") == "kernel"][:50]
        found += [event for event in document["traceEvents"] if event.get("name") == "[memory]"][:50]
    # Of one process.
    return [event if str(event.get("cat")) in ON_GPU else event | {"pid": 1} for event in found]


def _read(folder: Path, events: list[Event]) -> Timeline:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return read_kineto(path)


def _changed(events: list[Event], change: Callable[[Event], None]) -> list[Event]:
    result = json.loads(json.dumps(events))
    for event in result:
        if event.get("ph") in ("X", "i"):
            change(event)
    return result  # type: ignore[no-any-return]


def _said(timeline: Timeline) -> dict[str, Any]:
    """Everything that was read, but how."""
    found: dict[str, Any] = {}
    for field in fields(timeline):
        value = getattr(timeline, field.name)
        if field.name in ("notes", "repaired", "input_shapes", "input_dtypes"):
            continue
        columns = getattr(type(value), "__slots__", ())
        for name in columns:
            column = getattr(value, name)
            found[f"{field.name}.{name}"] = column.tolist() if isinstance(column, np.ndarray) else repr(column)
        if not columns:
            found[field.name] = repr(value)
    host = timeline.host
    for name, lists in (("shapes", timeline.input_shapes), ("dtypes", timeline.input_dtypes)):
        found[f"host.{name}"] = [lists[row] for row in getattr(host, name)]
    return found


ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
_FIELDS = [(kind, field.encode_name) for kind in (Complete, Args, MemoryArgs) for field in msgspec.structs.fields(kind)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name) if number % 5 == 0 else long(kind, name)
        for number, (kind, name) in enumerate(one for one in _FIELDS if one[1] not in ("cat", "ts", "dur", "args"))
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_an_odd_field_in_all_events_is_as_if_absent(
    recorded: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, name: str
) -> None:
    # None is read alone: a file with odd fields in more events than that is read whole, too.
    monkeypatch.setattr(stream, "_MOST_REPAIRED_ALONE", 0)

    def holder(event: Event) -> Event:
        return event if kind is Complete else event.get("args", {})

    absent = _said(_read(tmp_path, _changed(recorded, lambda event: holder(event).pop(name, None))))
    for odd in _ODD[1:] if name in _LISTS else _ODD:

        def change(event: Event, odd: Any = odd) -> None:
            if name in holder(event):
                holder(event)[name] = odd

        assert _said(_read(tmp_path, _changed(recorded, change))) == absent, f"{name}: {odd!r}"


def test_details_that_are_none_are_as_if_absent(recorded: list[Event], tmp_path: Path) -> None:
    absent = _read(tmp_path, _changed(recorded, lambda event: event.pop("args", None)))
    for odd in (7, "x", [1], 1e300):
        found = _read(tmp_path, _changed(recorded, lambda event, odd=odd: event.update(args=odd)))  # type: ignore[misc]
        assert _said(found) == _said(absent)
        assert [note.code for note in found.notes if note.code == "events_lost"] == []


def test_other_fields_of_an_event_with_odd_ones_are_read(recorded: list[Event], tmp_path: Path) -> None:
    """Each event has another odd field, so that all are loose at the end."""
    odd = {"number": 0}
    names = [name for kind, name in _FIELDS if kind is not Complete]

    def change(event: Event) -> None:
        odd["number"] += 1
        args = event.setdefault("args", {})
        name = names[odd["number"] % len(names)]
        if odd["number"] % 50 == 0:
            event["args"] = "x"
        elif name in args:
            args[name] = {"a": 7}

    def left_out(event: Event) -> None:
        odd["number"] += 1
        args = event.setdefault("args", {})
        if odd["number"] % 50 == 0:
            event["args"] = {}
        else:
            args.pop(names[odd["number"] % len(names)], None)

    changed = _changed(recorded, change)
    odd["number"] = 0
    assert _said(_read(tmp_path, changed)) == _said(_read(tmp_path, _changed(recorded, left_out)))


def test_an_event_without_a_known_phase_is_left_out_and_counted(recorded: list[Event], tmp_path: Path) -> None:
    sound = _read(tmp_path, recorded)
    strange: list[Any] = [{"ph": [7], "name": "x"}, {"name": "x"}, {"ph": "Q", "name": "x"}, {"ph": 1e300, "name": "x"}]
    found = _read(tmp_path, [*recorded[:7], *strange, *recorded[7:]])
    assert _said(found) == _said(sound) | {"events": repr(sound.events)}
    assert {note.code: note.count for note in found.notes}["events_lost"] == len(strange)


@pytest.mark.parametrize("time", ["absent", None, "x", [7], 1e300])
def test_a_memory_event_without_a_time_is_as_if_absent(tmp_path: Path, time: Any) -> None:
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}
    memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "args": {"Bytes": 8, "Addr": 1, "Device Type": 0}}
    timed = {} if time == "absent" else {"ts": time}
    timeline = _read(tmp_path, [op, memory | {"ts": 1}, memory | timed])
    assert timeline.memory.time_ns.tolist() == [1000]
