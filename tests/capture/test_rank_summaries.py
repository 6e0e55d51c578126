"""One line before the loop: each rank of a job leaves profiles of a few steps, at a path or at an address."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.object_store import empty_bucket

import tb_dlprof_plugin
from tb_dlprof_plugin.store.logdir import EventFileStore, runs_below
from tb_dlprof_plugin.store.profile_store import read_profile

torch = pytest.importorskip("torch")

TRAINING = textwrap.dedent("""
    import sys, time
    import torch
    import torch.distributed as dist
    import tb_dlprof_plugin

    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 8))
    model = torch.nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tb_dlprof_plugin.summarize_ranks(sys.argv[1], every=8)
    for step in range(18):
        optimizer.zero_grad()
        if dist.get_rank() == 1:
            time.sleep(0.02)
        model(torch.randn(32, 64)).sum().backward()
        optimizer.step()
    print(float(model.module[0].weight.detach().sum()))
    dist.destroy_process_group()
""")


@pytest.fixture
def bucket() -> Iterator[str]:
    with empty_bucket("rank-summaries") as address:
        yield address


@pytest.mark.slow
def test_two_ranks_write_their_facts_to_a_store_as_the_training_goes(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29571"]
    done = subprocess.run([*torchrun, script, f"{bucket}/runs/job"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "TbDlprofWarning" not in done.stderr
    # Neither traces nor temporary directories are left.
    assert [path.name for path in tmp_path.iterdir() if "tb_dlprof" in path.name] == []
    job = tb_dlprof_plugin.distributed(f"{bucket}/runs/job")
    assert (job.world_size, job.ranks, job.missing_ranks) == (2, [0, 1], [])
    assert job.collectives.matched_percent == 100
    assert job.heat is not None
    # The last of the two recordings, of which each has the last three of eight steps.
    assert job.heat.iterations == [13, 14, 15]
    assert job.delays[0].rank == 1


def _train(steps: int, second: bool = False) -> Any:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.1)
    for _ in range(steps):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        if second:
            other.step()
        yield


def _iterations(folder: Path) -> list[list[int]]:
    blobs = sorted(EventFileStore(runs_below(folder)).all(), key=lambda blob: blob.ref.cycle)
    return [read_profile(blob).iterations.number.tolist() for blob in blobs]


@pytest.mark.parametrize("second", [False, True])
def test_a_step_ends_with_that_of_the_first_optimizer_or_where_the_loop_says_so(tmp_path: Path, second: bool) -> None:
    with tb_dlprof_plugin.summarize_ranks(tmp_path, every=6, steps=2) as summaries:
        for _ in _train(14, second):
            if second:
                summaries.step()
    assert summaries.session.wait()
    assert _iterations(tmp_path) == [[4, 5], [10, 11]]
    assert not list(tmp_path.rglob("*.json*"))


def test_an_unfinished_recording_is_dropped(tmp_path: Path) -> None:
    with tb_dlprof_plugin.summarize_ranks(tmp_path, every=6, steps=3) as summaries:
        for _ in _train(10):
            pass
    assert summaries.session.wait()
    assert _iterations(tmp_path) == [[3, 4, 5]]
    # After it the training goes on without us.
    for _ in _train(2):
        pass
