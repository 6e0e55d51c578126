"""`tb-dlprof try` starts the script once for its sets, prints the best one with the lines to change, and goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
if sys.platform == "win32":
    pytest.skip("try freezes processes", allow_module_level=True)

from support.script_runs import TB_DLPROF, execute, write

pytestmark = pytest.mark.long

WAITS = """
    import os, time

    with open(os.environ["STARTS"], "a") as file:
        file.write("started\\n")

    class Slow(TensorDataset):
        def __getitem__(self, index):
            time.sleep(0.01)
            return super().__getitem__(index)

    x = torch.randn(4000, 8)
    loader = DataLoader(Slow(x, x.sum(1).gt(0).long()), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100000):
        for batch, target in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), target).backward()
            optimizer.step()
"""
NAMES = "loader_workers_1,loader_workers_2,channels_last,zero_grad_to_none,foreach_optimizer,compile_max_autotune"


def test_sets_are_measured_in_one_process_and_a_second_call_goes_on(tmp_path: Path) -> None:
    script = write(tmp_path, WAITS)
    starts = tmp_path / "starts"

    def tried(*options: str) -> tuple[dict[str, Any], str]:
        starts.write_text("")
        command = [*TB_DLPROF, "try", "--in-place", "--record", "none", "--remedies", NAMES, *options]
        env = {"XDG_DATA_HOME": str(tmp_path / "data"), "STARTS": str(starts), "OMP_NUM_THREADS": "1"}
        done = execute(*command, "--format", "json", "--budget", "25s", script, cwd=tmp_path, **env)
        assert done.status == 0, done.err
        return json.loads(done.out), done.err

    first, _ = tried()
    # The script, and the best set next to the unchanged script in fresh processes, at most twice.
    assert 1 <= len(starts.read_text().splitlines()) <= 5
    rows = {row["remedy"]: row for row in first["rows"]}
    assert rows["channels_last"]["no_effect"] == "The model has no convolutions of images."
    # Two workers wait for a disk at the same time: one is not tried.
    assert "2 are needed" in rows["loader_workers_1"]["no_effect"]
    measured = [row for row in (*first["sets"], *first["rows"]) if row["gain_percent"] is not None]
    assert any("loader_workers_2" in row["remedy"].split("+") and row["gain_percent"] > 20 for row in measured)
    assert first["first_step_s"] > 0
    second, _ = tried("--continue")
    again = {row["remedy"]: row for row in second["rows"]}
    assert again["channels_last"] == rows["channels_last"]
    assert second["sets"][: len(first["sets"])] or not first["sets"]
    changed = script.read_text() + "\n"
    script.write_text(changed)
    refused = execute(
        *TB_DLPROF, "try", "--continue", "--in-place", script, cwd=tmp_path, XDG_DATA_HOME=str(tmp_path / "data")
    )
    assert refused.status == 2
    assert "the script has changed since it was tried" in refused.err
