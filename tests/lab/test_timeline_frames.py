"""The large run of the frame benchmark: one step in place of several, all else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_dlprof_plugin.analysis import analyze_trace

pytest.importorskip("playwright")


def test_steps_become_one_and_every_other_event_stays(
    training, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "lab" / "speed"))
    from timeline_frames import one_step

    source = training().write()
    joined = tmp_path / "joined.pt.trace.json"
    joined.write_bytes(one_step(source.read_bytes()))
    before, after = analyze_trace(source), analyze_trace(joined)
    assert (len(before.iterations), len(after.iterations)) == (3, 1)
    assert after.iterations.host_stop_ns[0] - after.iterations.host_start_ns[0] == 3_000_000
    assert len(after.launches) == len(before.launches)
    # Two of three step annotations and of three optimizer steps are gone.
    assert len(before.calls) - len(after.calls) == 4
