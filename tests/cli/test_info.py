"""``tb-dlprof info``: the accounts of a recording."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.store.event_file import write_profile

TRACES = sorted((Path(__file__).parents[1] / "traces").glob("*.pt.trace.json.gz"))


def _info(source: Path, *args: str) -> Result:
    return CliRunner().invoke(app, ["info", str(source), *args])


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: path.name.split(".")[0])
def test_the_accounts_are_those_of_the_file(trace: Path) -> None:
    result = _info(trace, "--format", "json")
    try:
        document = json.loads(gzip.decompress(trace.read_bytes()), strict=False)
    except json.JSONDecodeError:
        # torch itself wrote metadata that is no JSON.
        assert {"header_damaged", "header_mended"} & {note["code"] for note in json.loads(result.stdout)["notes"]}
        return
    events = document if isinstance(document, list) else document["traceEvents"]
    if result.exit_code:
        assert "holds no op" in result.stderr
        return
    page = json.loads(result.stdout)
    kernels = [event for event in events if event.get("cat") == "kernel" and event["ph"] == "X"]
    assert page["events"] == len(events)
    assert page["repaired"] == 0
    if trace.name.startswith("legacy") or "events_export" in trace.name:
        return  # has no categories
    assert page["kernels"] == len(kernels)
    assert page["kernel_time_ns"] == sum(round(event["dur"] * 1000) for event in kernels)
    parts = ("attributed", "orphan", "unattributed")
    assert sum(page[f"{part}_kernel_time_ns"] for part in parts) == page["kernel_time_ns"]


def test_a_trace_and_the_run_made_of_it_say_the_same(training, tmp_path: Path) -> None:
    trace = training()
    event_file = write_profile(tmp_path / "run", trace.profile())
    pages = [json.loads(_info(source, "--format", "json").stdout) for source in (tmp_path / "run", event_file)]
    assert pages[0] == pages[1]
    alone = json.loads(_info(trace.write("t.pt.trace.json"), "--format", "json").stdout)
    same = ("events", "steps", "kernels", "kernel_time_ns", "attributed_kernel_time_ns", "repaired", "notes")
    assert {key: alone[key] for key in same} == {key: pages[0][key] for key in same}


def test_a_directory_with_one_trace_is_read_as_that_trace(training, tmp_path: Path) -> None:
    training(steps=1).write("only.pt.trace.json").rename(tmp_path / "only.pt.trace.json")
    assert "only.pt.trace.json" in _info(tmp_path).stdout


def test_what_was_mended_is_told(new_trace, tmp_path: Path) -> None:
    trace = new_trace()
    trace.op("aten::mm", 0, 5)
    trace.op("aten::add", 10, -5)
    result = _info(trace.write())
    assert "1 repaired" in result.stdout
    assert "negative duration" in result.stdout
    assert "nothing ran on a GPU" in result.stdout
