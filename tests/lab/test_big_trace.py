"""A trace made of repeated steps is one that the profiler could have recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from big_trace import make, read, repeat, take_apart

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.metrics.kernels import coverage
from tb_dlprof_plugin.profile_view import ProfileView

TRACES = Path(__file__).resolve().parents[1] / "traces"
RESNET = TRACES / "resnet50_fp32.pt.trace.json.gz"


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three times the two ResNet-50 steps, and one step more."""
    out = tmp_path_factory.mktemp("big") / "big.pt.trace.json"
    recording = take_apart(read(RESNET))
    once = [len(step.text) for step in recording.steps]
    ends = len(recording.head) + len(recording.before.text) + len(recording.after.text) + len(recording.tail)
    make(RESNET, out, (ends + 3 * sum(once) + once[0] // 2) / 1e6)
    return out


def test_one_repetition_is_the_source_itself() -> None:
    source = json.loads(read(RESNET))
    recording = take_apart(read(RESNET))
    made = json.loads(b"".join(repeat(recording, len(read(RESNET)) * 9 // 10)))

    def counted(document: dict[str, Any]) -> Counter[str]:
        return Counter(json.dumps(event, sort_keys=True) for event in document["traceEvents"])

    assert counted(made) == counted(source)
    assert {key: value for key, value in made.items() if key != "traceEvents"} == {
        key: value for key, value in source.items() if key != "traceEvents"
    }


def test_steps_count_on_and_last_as_long(big: Path) -> None:
    source, made = analyze_trace(RESNET).iterations, analyze_trace(big).iterations
    first = int(source.number[0])
    assert made.number.tolist() == [first + i for i in range(7)]
    # The last step of a repetition is as long as in the source, up to the start of the next one.
    assert made.duration_ns[2:4].tolist() == made.duration_ns[4:6].tolist()
    np.testing.assert_allclose(made.duration_ns[1:6:2], source.duration_ns[1], rtol=0.02)


def test_every_launch_finds_its_kernel_and_orphans_come_once(big: Path) -> None:
    source, made = coverage(ProfileView(analyze_trace(RESNET))), coverage(ProfileView(analyze_trace(big)))
    assert made.orphan_ns == source.orphan_ns > 0
    assert made.unattributed_ns == source.unattributed_ns == 0
    assert 3 * source.linked_ns < made.linked_ns < 4 * source.linked_ns


def test_no_number_comes_twice_and_every_flow_ends(big: Path) -> None:
    events = json.loads(big.read_bytes())["traceEvents"]
    for key in ("External id", "Ev Idx"):
        ops = [e["args"][key] for e in events if e.get("cat") == "cpu_op" and key in e.get("args", {})]
        assert len(ops) == len(set(ops)) > 1000
    starts = Counter((e["cat"], e["id"]) for e in events if e["ph"] == "s")
    assert max(starts.values()) == 1
    source = json.loads(read(RESNET))["traceEvents"]
    begun = {(e["cat"], e["id"]) for e in source if e["ph"] == "s"}
    loose = sum((e["cat"], e["id"]) not in begun for e in source if e["ph"] == "f")
    assert sum((e["cat"], e["id"]) not in starts for e in events if e["ph"] == "f") == loose


def test_gpu_work_of_a_stream_does_not_overlap(big: Path) -> None:
    launches = analyze_trace(big).launches
    for stream in np.unique(launches.stream):
        rows = launches.stream == stream
        ends = launches.start_ns[rows] + launches.duration_ns[rows]
        assert (launches.start_ns[rows][1:] >= ends[:-1]).all()


def test_the_recordings_span_holds_all_of_it(big: Path) -> None:
    events = json.loads(big.read_bytes())["traceEvents"]
    (span,) = [e for e in events if e.get("cat") == "Trace"]
    (end,) = [e for e in events if e["name"] == "Record Window End"]
    last = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X" and e is not span)
    assert span["ts"] + span["dur"] >= last
    assert end["ts"] >= last


def test_the_size_is_reached_by_less_than_a_step(tmp_path: Path, training: Callable[..., Any]) -> None:
    source = training(steps=5).write()
    step = max(len(part.text) for part in take_apart(read(source)).steps)
    for megabytes in (0.05, 0.3):
        size = make(source, tmp_path / "made.json.gz", megabytes, compress=True)
        assert megabytes * 1e6 <= size <= megabytes * 1e6 + step + 1000
        assert len(read(tmp_path / "made.json.gz")) == size


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    for number, text in enumerate(('{"traceEvents": []}', "[1, 2", '{"rows": []}')):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        with pytest.raises(ValueError, match="trace"):
            make(path, tmp_path / "made.json", 1)
