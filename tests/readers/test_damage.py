"""Damaged files: one bad event loses nothing but itself, the notes count exactly, and the cost stays linear."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kineto_file import read_kineto
from support.marks import long

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.kineto import blocks

HEAD = '{"schemaVersion": 1, "baseTimeNanoseconds": 7, "traceEvents": [\n  '
TAIL = '\n  ],\n  "traceName": "worker.pt.trace.json", "cuda_runtime_version": 12040\n}\n'
COUNT, BAD = 100, 57


def event(number: int) -> str:
    """An op as Kineto writes it."""
    return (
        f'{{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1,\n    "ts": {number * 10}.{number:03}, '
        f'"dur": 5.000,\n    "args": {{\n      "External id": {number}, "Input Dims": [[2, 3], [3, 4]], '
        '"Input type": ["float", "float"]\n    }\n  }'
    )


def write(folder: Path, text: str | bytes, name: str = "trace.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def document(events: list[str], between: str = ",\n  ") -> str:
    return HEAD + between.join(events) + TAIL


def notes(timeline: Timeline) -> dict[str, int | None]:
    return {note.code: note.count for note in timeline.notes}


def names(timeline: Timeline) -> list[str]:
    return [timeline.strings[i] for i in timeline.host.name]


REPAIRED: dict[str, tuple[Callable[[str], str], str, str]] = {
    "quotes in a name": (lambda e: e.replace("aten::mm", 'foo "bar" baz'), "unescaped_text", 'foo "bar" baz'),
    "a name in quotes": (lambda e: e.replace("aten::mm", '"foo"'), "unescaped_text", '"foo"'),
    "a quote before a comma": (lambda e: e.replace("aten::mm", 'f("a", b")'), "unescaped_text", 'f("a", b")'),
    "a dict in a name": (lambda e: e.replace("aten::mm", 'f({"a": 1})'), "unescaped_text", 'f({"a": 1})'),
    "a Windows path": (lambda e: e.replace("aten::mm", r"C:\Users\new\b.py"), "unescaped_text", r"C:\Users\new\b.py"),
    "a Windows folder": (lambda e: e.replace("aten::mm", "C:\\Users\\"), "unescaped_text", "C:\\Users\\"),
    "a regular expression": (lambda e: e.replace("aten::mm", r"\d+\s"), "unescaped_text", r"\d+\s"),
    "a line break in a name": (lambda e: e.replace("aten::mm", "foo\nbar"), "control_characters", "foo bar"),
    "a tab in a name": (lambda e: e.replace("aten::mm", "foo\tbar"), "control_characters", "foo bar"),
    "a bell in a name": (lambda e: e.replace("aten::mm", "foo\abar"), "control_characters", "foo bar"),
    "a zero in a name": (lambda e: e.replace("aten::mm", "foo\0bar"), "control_characters", "foo bar"),
    "NaN": (lambda e: e.replace('"External id"', '"x": NaN, "External id"'), "not_a_number", "aten::mm"),
    "-nan": (lambda e: e.replace('"External id"', '"x": -nan, "External id"'), "not_a_number", "aten::mm"),
    "-nan(ind)": (lambda e: e.replace('"External id"', '"x": -nan(ind), "External id"'), "not_a_number", "aten::mm"),
    "Infinity": (lambda e: e.replace('"External id"', '"x": Infinity, "External id"'), "not_a_number", "aten::mm"),
    "NaN in a list": (lambda e: e.replace("[2, 3]", "[2, NaN]"), "not_a_number", "aten::mm"),
    "a field of another type": (lambda e: e.replace('"pid": 1', '"pid": [1]'), "odd_fields", "aten::mm"),
    "args that are a list": (lambda e: e[: e.index('"args"')] + '"args": []}', "odd_fields", "aten::mm"),
    "an id of 5000 digits": (
        lambda e: e.replace('"External id": 57', '"External id": ' + "9" * 5000),
        "odd_fields",
        "aten::mm",
    ),
    "a negative duration": (lambda e: e.replace("5.000", "-5.000"), "negative_duration", "aten::mm"),
    "a brace too many behind": (lambda e: e + "}", "stray_text", "aten::mm"),
}


@pytest.mark.parametrize("case", REPAIRED)
@pytest.mark.parametrize("row", [0, BAD, COUNT - 1])
def test_one_damaged_event_among_a_hundred_is_mended_and_counted_once(tmp_path: Path, case: str, row: int) -> None:
    damage, code, name = REPAIRED[case]
    events = [event(number) for number in range(COUNT)]
    events[row] = damage(event(BAD).replace(f"{BAD}0.0{BAD}", f"{row * 10}.{row:03}"))
    timeline = read_kineto(write(tmp_path, document(events)))
    assert notes(timeline) == {code: 1}
    assert timeline.repaired == 1
    assert timeline.events == COUNT
    assert names(timeline) == ["aten::mm"] * row + [name] + ["aten::mm"] * (COUNT - row - 1)
    assert timeline.cuda_runtime_version == 12040, "what stands behind the events"


def test_bytes_that_are_not_utf8_become_replacement_characters(tmp_path: Path) -> None:
    events = [event(number) for number in range(COUNT)]
    events[BAD] = events[BAD].replace("aten::mm", "k\xff")
    timeline = read_kineto(write(tmp_path, document(events).encode("latin-1")))
    assert notes(timeline) == {"bad_utf8": 1}
    assert names(timeline)[BAD] == "k\N{REPLACEMENT CHARACTER}"


def test_an_event_that_is_mended_in_two_ways_counts_once(tmp_path: Path) -> None:
    events = [event(0), event(1).replace("aten::mm", 'a "b" \a').replace("[2, 3]", "[2, NaN]")]
    timeline = read_kineto(write(tmp_path, document(events)))
    assert notes(timeline) == {"control_characters": 1, "not_a_number": 1, "unescaped_text": 1}
    assert timeline.repaired == 1


LOST: dict[str, tuple[Callable[[str], str], str]] = {
    "a brace is missing": (lambda e: e[:-1], "events_lost"),
    "a colon is missing": (lambda e: e.replace(":", "", 1), "events_lost"),
    "a quote is missing": (lambda e: e.replace('mm"', "mm"), "events_lost"),
    "lists in lists without end": (lambda e: e.replace("[2, 3]", "[" * 10_000), "events_lost"),
    "lists too deep": (lambda e: e.replace("[2, 3]", "[" * 10_000 + "]" * 10_000), "events_lost"),
    "no phase": (lambda e: e.replace('"ph"', '"hp"'), "events_lost"),
    "an unknown phase": (lambda e: e.replace('"X"', '"Q"'), "events_lost"),
    "its beginning is missing": (lambda e: e[100:], "events_lost"),
    "a duration that is no number": (lambda e: e.replace("5.000", "NaN"), "absurd_time"),
    "a duration in words": (lambda e: e.replace("5.000", '"long"'), "absurd_time"),
    "a start that is no number": (lambda e: e.replace(f"{BAD}0.0{BAD}", "-inf"), "absurd_time"),
    "an endless start": (lambda e: e.replace(f"{BAD}0.0{BAD}", "1e300"), "absurd_time"),
    "a start of 5000 digits": (lambda e: e.replace(f"{BAD}0.0{BAD}", "9" * 5000), "absurd_time"),
    "no start": (lambda e: e.replace('"ts"', '"st"'), "absurd_time"),
    "a duration of a year": (lambda e: e.replace("5.000", "3.2e13"), "absurd_time"),
}


@pytest.mark.parametrize("case", LOST)
def test_one_event_that_cannot_be_read_loses_only_itself(tmp_path: Path, case: str) -> None:
    damage, code = LOST[case]
    events = [event(number) for number in range(COUNT)]
    events[BAD] = damage(events[BAD])
    timeline = read_kineto(write(tmp_path, document(events)))
    assert notes(timeline) == {code: 1}
    assert timeline.host.external_id.tolist() == [n for n in range(COUNT) if n != BAD]
    assert timeline.cuda_runtime_version == 12040


@pytest.mark.parametrize("case", LOST)
def test_the_last_event_can_be_lost_too(tmp_path: Path, case: str) -> None:
    damage, code = LOST[case]
    events = [event(number) for number in range(BAD + 1)]
    events[BAD] = damage(events[BAD])
    timeline = read_kineto(write(tmp_path, document(events)))
    assert notes(timeline) == {code: 1}
    assert timeline.host.external_id.tolist() == list(range(BAD))


NOT_REPAIRED: dict[str, tuple[Callable[[str], str], list[int]]] = {
    # What no version of torch writes: the damage, and which events are lost.
    "its end is missing": (lambda e: e[:100], [BAD, BAD + 1]),
    "a bracket too many behind": (lambda e: e + "]", [BAD + 1]),
    "a word behind": (lambda e: e + " USDT: start", [BAD + 1]),
    "a bracket too many before": (lambda e: "[" + e, [BAD]),
    "a brace too many before": (lambda e: "{" + e, [BAD]),
    "a comma too many in a list": (lambda e: e.replace('"float"]', '"float",]'), [BAD]),
    "a comma too many in an object": (lambda e: e.replace("]\n    }", "],\n    }"), [BAD]),
    "infinity as C++ prints it in a list": (lambda e: e.replace("[2, 3]", "[2, -inf]"), [BAD]),
}


@pytest.mark.parametrize("case", NOT_REPAIRED)
def test_what_no_torch_writes_loses_the_event_or_the_one_behind_it_and_is_counted(tmp_path: Path, case: str) -> None:
    damage, lost = NOT_REPAIRED[case]
    events = [event(number) for number in range(COUNT)]
    events[BAD] = damage(events[BAD])
    timeline = read_kineto(write(tmp_path, document(events)))
    assert notes(timeline) == {"events_lost": len(lost)}
    assert timeline.host.external_id.tolist() == [n for n in range(COUNT) if n not in lost]
    assert timeline.cuda_runtime_version == 12040


@pytest.mark.parametrize("case", [*LOST, *NOT_REPAIRED])
def test_where_nothing_else_is_there_the_file_is_named(tmp_path: Path, case: str) -> None:
    damage = (LOST.get(case) or NOT_REPAIRED[case])[0]
    path = write(tmp_path, document([damage(event(BAD))]))
    if case in ("a bracket too many behind", "a word behind"):
        assert len(read_kineto(path).host) == 1, "what is damaged stands behind the event"
    else:
        with pytest.raises(TraceError, match=f"^{re.escape(str(path))} holds "):
            read_kineto(path)


def test_half_a_character_costs_the_text_and_not_the_event(tmp_path: Path) -> None:
    events = [event(0), event(1).replace("aten::mm", r"\ud83d!"), event(2)]
    timeline = read_kineto(write(tmp_path, document(events)))
    assert (names(timeline), notes(timeline)) == (["aten::mm", "", "aten::mm"], {"odd_fields": 1})


def test_a_file_cut_at_any_byte_loses_the_event_that_was_cut_and_what_came_after(tmp_path: Path) -> None:
    events = [event(number) for number in range(4)]
    text = document(events)
    ends = [text.index(e) + len(e) for e in events]
    for cut in range(len(HEAD) + len(events[0]), len(text) - 2):
        timeline = read_kineto(write(tmp_path, text[:cut]))
        whole = sum(end <= cut for end in ends)
        inside = whole < len(ends) and text.index(events[whole]) < cut
        assert timeline.host.external_id.tolist() == list(range(whole)), cut
        assert notes(timeline) == {"cut_short": None} | ({"events_lost": 1} if inside else {}), cut


def test_a_file_cut_before_the_end_of_its_first_event_is_one_error(tmp_path: Path) -> None:
    text = document([event(0)])
    for cut in range(len(HEAD) + len(event(0))):
        with pytest.raises(TraceError, match=r"is empty|ends in the middle of the JSON") as caught:
            read_kineto(write(tmp_path, text[:cut]))
        assert str(tmp_path) in str(caught.value)


def test_a_gzip_file_cut_at_any_byte_gives_what_could_be_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(document([event(number) for number in range(COUNT)]).encode())
    read = []
    for cut in range(len(packed) // 2, len(packed), 7):
        timeline = read_kineto(write(tmp_path, packed[:cut]))
        assert "gzip_cut" in notes(timeline)
        assert "cut_short" not in notes(timeline)
        read.append(len(timeline.host))
    assert read == sorted(read)
    assert COUNT // 4 < read[0] < read[-1] == COUNT


def test_a_gzip_file_damaged_in_the_middle_gives_what_stands_before(tmp_path: Path) -> None:
    text = document([event(number) for number in range(3000)]).encode()
    packed = bytearray(gzip.compress(text))
    packed[len(packed) // 2] ^= 0xFF
    timeline = read_kineto(write(tmp_path, bytes(packed)))
    assert "gzip_damaged" in notes(timeline)
    assert 1000 < len(timeline.host) < 3000


def test_a_wrong_checksum_loses_nothing(tmp_path: Path) -> None:
    packed = gzip.compress(document([event(number) for number in range(3000)]).encode())
    timeline = read_kineto(write(tmp_path, packed[:-8] + b"\0" * 8))
    assert notes(timeline) == {"gzip_damaged": None}
    assert len(timeline.host) == 3000


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_gzip_members_and_zeros_behind_them_are_one_file(tmp_path: Path, monkeypatch, block: int) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
    text = document([event(number) for number in range(10)]).encode()
    packed = b"".join(gzip.compress(part) + b"\0" * 3 for part in (text[:100], text[100:900], text[900:]))
    timeline = read_kineto(write(tmp_path, packed))
    assert (len(timeline.host), timeline.notes) == (10, [])


def test_text_behind_the_end_is_noted(tmp_path: Path) -> None:
    for text in (document([event(0)]) + document([event(1)]), f"[{event(0)}] and more"):
        timeline = read_kineto(write(tmp_path, text))
        assert timeline.host.external_id.tolist() == [0]
        assert notes(timeline) == {"text_behind": None}


def test_zeros_behind_the_end_are_what_a_file_system_leaves(tmp_path: Path) -> None:
    timeline = read_kineto(write(tmp_path, document([event(0)]).encode() + b"\0" * 5000))
    assert (len(timeline.host), timeline.notes) == (1, [])


def test_a_damaged_header_keeps_its_sound_fields(tmp_path: Path) -> None:
    head = HEAD.replace('"schema', '"traceName": "C:\\Users\\me", "distributedInfo": {"rank": -3}, "schema')
    timeline = read_kineto(write(tmp_path, head + event(0) + TAIL))
    assert (timeline.base_time_unix_ns, timeline.rank, timeline.cuda_runtime_version) == (7, None, 12040)
    assert notes(timeline) == {"header_mended": None, "header_damaged": None}


@pytest.mark.parametrize("mark", ["", "\N{ZERO WIDTH NO-BREAK SPACE}"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", [None, 0, 1, 2, 4])
@pytest.mark.parametrize("first", ["ph", "args", "cname"])
def test_every_layout_of_the_json_gives_the_same(tmp_path: Path, mark, pack, line, indent, first) -> None:
    rows = [dict(sorted(json.loads(event(n)).items(), key=lambda kv: kv[0] != first)) for n in range(20)]
    rows = [{first: "good", **row} if first == "cname" else row for row in rows]
    text = json.dumps({"a": 1, "traceEvents": rows, "cuda_runtime_version": 12040}, indent=indent)
    path = write(tmp_path, pack((mark + text.replace("\n", line)).encode()))
    timeline = read_kineto(path)
    assert timeline.host.external_id.tolist() == list(range(20))
    assert timeline.host.duration_ns.tolist() == [5000] * 20
    assert (timeline.cuda_runtime_version, timeline.notes) == (12040, [])


_NAMES = st.text(st.sampled_from('ab\\"{}[],: \né'), max_size=12) | st.sampled_from(
    ['}, {"ph": "X"', '"}], "x": [{', "C:\\x", "\\\\"]
)  # fmt: skip
_VALUES = st.recursive(
    st.integers(-5, 5) | _NAMES | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "args", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_EVENTS = st.lists(st.tuples(_NAMES, st.dictionaries(st.sampled_from(["a", "list", "cat"]), _VALUES, max_size=3)))


@given(
    events=_EVENTS, block=st.integers(1, 200), indent=st.sampled_from([None, 1]), more=_VALUES, at_once=st.booleans()
)
def test_where_the_blocks_end_makes_no_difference(tmp_path_factory, events, block, indent, more, at_once) -> None:
    # GIVEN sound events with anything in their names and args, and other content behind them
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": name, "ts": n, "dur": 1, "args": {"External id": n, **args}}
        for n, (name, args) in enumerate([("first", {}), *events])
    ]
    text = json.dumps({"traceEvents": rows, "more": more, "cuda_runtime_version": 9}, indent=indent)
    path = write(tmp_path_factory.mktemp("blocks"), text)
    if at_once:
        path.write_bytes(gzip.compress(path.read_bytes()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block)
        timeline = read_kineto(path)

    assert names(timeline) == [row["name"] for row in rows]
    assert timeline.host.external_id.tolist() == list(range(len(rows)))
    assert (timeline.notes, timeline.cuda_runtime_version) == ([], 9)


@pytest.mark.parametrize("block", [16, 64, 300, 1000, 4000])
@pytest.mark.parametrize("cases", [REPAIRED, LOST, NOT_REPAIRED], ids=["repaired", "lost", "not repaired"])
def test_damage_counts_the_same_however_the_blocks_fall(tmp_path: Path, monkeypatch, cases, block: int) -> None:
    events = []
    for damage, *_ in cases.values():
        if len(damage(event(0))) < 3000:
            events += [event(len(events)), damage(event(BAD).replace(f"{BAD}0.0{BAD}", str(len(events))))]
    path = write(tmp_path, document([*events, event(999)]))
    whole = read_kineto(path)

    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
    timeline = read_kineto(path)

    assert notes(timeline) == notes(whole)
    assert names(timeline) == names(whole)
    np.testing.assert_array_equal(timeline.host.start_ns, whole.host.start_ns)


def test_megabytes_behind_the_events_are_not_events(tmp_path: Path) -> None:
    other = json.dumps([{"name": "x", "ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1}] * 60_000)
    text = document([event(n) for n in range(5000)]).replace('"traceName"', f'"other": {other}, "traceName"')
    assert len(text) > 4 << 20
    timeline = read_kineto(write(tmp_path, text))
    assert (len(timeline.host), timeline.cuda_runtime_version, timeline.notes) == (5000, 12040, [])


def test_a_header_of_megabytes_is_read(tmp_path: Path) -> None:
    text = document([event(n) for n in range(100)]).replace('"schema', f'"notes": "{"x" * (5 << 20)}", "schema', 1)
    timeline = read_kineto(write(tmp_path, text))
    assert (len(timeline.host), timeline.base_time_unix_ns, timeline.notes) == (100, 7, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", ["quotes in a name", long("NaN in a list"), long("a field of another type"), "a brace is missing"]
)
def test_time_grows_with_the_file_and_not_with_its_square(tmp_path: Path, case: str) -> None:
    # GIVEN a file in which every event is bad, and one of four times the size
    damage = (REPAIRED.get(case) or LOST[case])[0]

    def seconds(count: int) -> float:
        path = write(tmp_path, document([*(damage(event(n)) for n in range(count)), event(count)]))
        begin = time.process_time()
        read_kineto(path)
        return time.process_time() - begin

    small = min(seconds(2500) for _ in range(2))
    large = min(seconds(10_000) for _ in range(2))

    assert large < 8 * small
    assert large < 10_000 * 0.5e-3
