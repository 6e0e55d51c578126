"""A training that is recorded a thousand times, each recording analysed: nothing grows, and it computes the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tb_dlprof_plugin.store.logdir import read_profiles

CYCLES = 1_000
# What the process holds after a tenth of the cycles, and at the end.
SCRIPT = """
    import gc, hashlib, json, os, sys, threading, torch
    from pathlib import Path
    from tb_dlprof_plugin.capture import trace_handler

    run, cycles, recorded = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "recorded"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(8, 16)

    def step():
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()

    def held():
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        folders = [one for one in Path(os.environ["TMPDIR"]).glob("tb_dlprof*") if one.is_dir()]
        return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": len(os.listdir("/proc/self/task")),
                "rss_mb": pages * os.sysconf("SC_PAGE_SIZE") / 2**20, "folders": len(folders)}

    found = []
    if recorded:
        handler = trace_handler(run, keep_trace=False)
        plan = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=cycles)
        with torch.profiler.profile(schedule=plan, on_trace_ready=handler) as recorder:
            for cycle in range(cycles):
                for _ in range(2):
                    step()
                    recorder.step()
                assert handler.wait(60)
                if cycle + 1 in (cycles // 10, cycles):
                    found.append(held())
    else:
        for _ in range(2 * cycles):
            step()
    weights = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
    print(json.dumps({"held": found, "weights": hashlib.sha256(weights).hexdigest()}))
"""


def _trained(folder: Path, how: str) -> dict[str, Any]:
    script, scratch = folder / "train.py", folder / "tmp"
    script.write_text(textwrap.dedent(SCRIPT))
    scratch.mkdir(exist_ok=True)
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, str(script), str(folder / "run"), str(CYCLES), how],
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@pytest.mark.long
@pytest.mark.timeout(7_200)
def test_a_thousand_recordings_leave_nothing_behind(tmp_path: Path) -> None:
    recorded, alone = _trained(tmp_path, "recorded"), _trained(tmp_path, "alone")
    assert recorded["weights"] == alone["weights"]
    early, late = recorded["held"]
    assert (late["descriptors"], late["threads"], late["folders"]) == (early["descriptors"], early["threads"], 0)
    assert late["rss_mb"] - early["rss_mb"] < 20
    stored = read_profiles(tmp_path / "run")
    assert sorted(one.profile.source.cycle for one in stored) == list(range(CYCLES))
