"""The speed comparison's verdicts, and a run of it on what is installed here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
import pytest
from peers import Cost, Measured, Program, growth, measure, verdicts

MB = 10**6


def measured(json_mb: float, events: int, **costs: tuple[float, float]) -> Measured:
    found = {name: Cost([seconds], [seconds], int(megabytes * MB)) for name, (seconds, megabytes) in costs.items()}
    return Measured("trace.json", int(json_mb * MB), int(json_mb * MB), events, found)


def test_targets_met_and_missed() -> None:
    file = measured(400, 1_500_000, ours=(4, 1000), ttp=(60, 4500), hta=(15, 2000), bare=(1.5, 1200))
    assert [(one.text.split(" ")[0], one.met) for one in verdicts(file)] == [
        ("15.0", True),
        ("0.22", True),
        ("3.8", False),
        ("2.67", False),
        ("0.67", True),
    ]


def test_memory_per_event_is_asked_of_large_traces_only() -> None:
    small = verdicts(measured(10, 30_000, ours=(1, 100), bare=(0.5, 60)))
    assert not any("an event" in one.text for one in small)


def test_a_peer_that_failed_has_no_verdict_and_we_have_one() -> None:
    file = measured(10, 30_000, ours=(1, 100))
    file.costs["hta"] = Cost(failed="it broke")
    assert verdicts(file) == []
    file.costs["ours"] = Cost(failed="we broke")
    assert [one.met for one in verdicts(file)] == [False]


def test_growth_is_the_power_of_the_events() -> None:
    assert growth([(10, 1.0), (100, 10.0), (1000, 1000.0)]) == pytest.approx([1.0, 2.0])


def test_programs_run_in_turns_on_the_same_file(training: Callable[..., Any]) -> None:
    trace = training().write()
    ran: list[str] = []

    def command(name: str, status: int) -> Callable[[Path, Path], list[str | Path]]:
        def build(_: Path, folder: Path) -> list[str | Path]:
            assert list(folder.iterdir()) == []
            ran.append(name)
            return [sys.executable, "-c", f"import sys; sys.exit({status})"]

        return build

    compared = [Program(name, name, command(name, int(name == "c"))) for name in "abc"]
    result = measure(trace, compared, 2)
    assert "".join(ran) == "abcbaab"
    assert result.events == len(training().events)
    assert [len(result.costs[name].seconds) for name in "abc"] == [2, 2, 0]
    assert "ended with 1" in result.costs["c"].failed


@pytest.mark.long
def test_our_analysis_and_the_bare_decode_read_a_trace(training: Callable[..., Any]) -> None:
    trace = training().write("run.pt.trace.json.gz")
    ours = peers.our_command()
    compared = [
        Program("ours", "ours", lambda path, folder: [*ours, path, "--logdir", folder]),
        Program("bare", "bare", lambda path, _: [sys.executable, peers.HERE / "bare_decode.py", path]),
        Program("json", "json", lambda path, _: [sys.executable, peers.PROGRAMS / "load_json.py", path]),
    ]
    result = measure(trace, compared, 1, peers.json_size(trace))
    assert {name: cost.failed for name, cost in result.costs.items()} == {"ours": "", "bare": "", "json": ""}
    lines = peers.describe(result, compared)
    assert len(lines) == 6
    assert f"{len(training().events):,} events" in lines[1]


def test_help_needs_no_peers() -> None:
    for script in ("peers.py", "peer_tables.py", "big_trace.py"):
        done = subprocess.run([sys.executable, str(peers.HERE / script), "--help"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "usage" in done.stdout
