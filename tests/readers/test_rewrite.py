"""Copies of traces with changed events: valid JSON, whole or not at all, whatever the source is like."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.interop.torch_tb_profiler.rewrite import rewrite_trace
from tb_dlprof_plugin.readers.errors import TraceError

RESNET = Path(__file__).resolve().parents[1] / "traces" / "resnet50_fp32.pt.trace.json.gz"  # of six runs of 1 MB


class Keep:
    """Leaves out the events that `keep` refuses, adds others, and changes nothing else."""

    def __init__(self, keep: Any = lambda event: True, added: Any = ()) -> None:
        self.keep, self.added = keep, list(added)

    def change(self, event: dict[str, Any]) -> bool:
        return bool(self.keep(event))

    def more(self) -> list[dict[str, Any]]:
        return self.added


GOOD = {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1.5, "dur": 2, "args": {"External id": 1}}


def rewritten(source: Path, keep: Any = lambda event: True, added: Any = ()) -> dict[str, Any]:
    target = source.with_name("copy.json.gz")
    rewrite_trace(source, target, lambda header: Keep(keep, added), {"made": "here"})
    assert sorted(path.name for path in source.parent.iterdir()) == sorted([source.name, target.name])
    document: dict[str, Any] = json.loads(gzip.decompress(target.read_bytes()))
    return document


def test_a_trace_of_many_runs_is_copied_event_by_event(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_bytes(gzip.decompress(RESNET.read_bytes()))
    original = json.loads(source.read_bytes())
    copy = rewritten(source)
    assert copy.pop("made") == "here"
    assert copy == original


def test_events_can_be_left_out(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [GOOD, {**GOOD, "name": "no"}], "traceName": "t"}))
    copy = rewritten(source, lambda event: event["name"] != "no")
    assert copy == {"made": "here", "schemaVersion": 1, "traceEvents": [GOOD], "traceName": "t"}
    assert rewritten(source, lambda event: False)["traceEvents"] == []


def test_events_can_be_added(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_text(json.dumps({"traceEvents": [GOOD]}))
    assert rewritten(source, added=[{"name": "new"}])["traceEvents"] == [GOOD, {"name": "new"}]
    assert rewritten(source, lambda event: False, [{"name": "new"}])["traceEvents"] == [{"name": "new"}]


@pytest.mark.parametrize(
    ("events", "count"),
    [
        (f'{{"ph": "X", "name": "say "hello"", "ts": 1, "dur": 1}}, {json.dumps(GOOD)}', 2),  # unescaped
        (f'{json.dumps(GOOD)}, {{"ph": "X", "name": "nan", "ts": 1, "dur": 1, "args": {{"x": NaN}}}}', 2),
    ],
)
def test_what_is_no_json_is_mended(tmp_path: Path, events: str, count: int) -> None:
    source = tmp_path / "trace.json"
    source.write_text(f'{{"traceEvents": [{events}], "traceName": "t"}}')
    copy = rewritten(source)
    assert len(copy["traceEvents"]) == count
    assert copy["traceName"] == "t"


def test_a_trace_that_was_cut_is_copied_up_to_there(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_text(json.dumps({"traceEvents": [GOOD, GOOD, GOOD]})[:-40])
    assert rewritten(source)["traceEvents"] == [GOOD, GOOD]


def test_a_list_of_events_becomes_a_document(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_text(json.dumps([GOOD, GOOD]))
    assert rewritten(source)["traceEvents"] == [GOOD, GOOD]


def test_what_is_no_trace_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "trace.json"
    source.write_text("{}")
    with pytest.raises(TraceError):
        rewrite_trace(source, tmp_path / "copy.json.gz", lambda header: Keep(), {})
    source.write_text(json.dumps({"traceEvents": [GOOD]}))
    with pytest.raises(ZeroDivisionError):
        rewrite_trace(source, tmp_path / "copy.json.gz", lambda header: Keep(lambda event: 1 / 0), {})
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
