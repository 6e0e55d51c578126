"""``tb-dlprof run --nsys``: the command line that is built, and what comes of its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.nsys_database import NsysDatabase
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.run.options import RunMode, RunOptions
from tb_dlprof_plugin.cli.run.output_dir import OutputDirectory
from tb_dlprof_plugin.cli.run.under_nsys import NsysRun
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_folder import RunFolder


def nsys_run(tmp_path: Path, **values: object) -> NsysRun:
    output = OutputDirectory(RunFolder(tmp_path / "runs", "server"), [], "server")
    options = RunOptions(**values)  # type: ignore[arg-type]
    return NsysRun(["./server", "--port", "1"], output, options, RunRequest(str(tmp_path), 0.0), tmp_path)


def test_only_gpu_work_and_ranges_are_recorded_unless_more_is_asked_for(tmp_path: Path) -> None:
    assert nsys_run(tmp_path).line("/opt/nsys", pytorch=False) == [
        "/opt/nsys", "profile", "--trace=cuda,nvtx,cudnn,cublas", "--sample=none", "--cpuctxsw=none",
        f"--output={tmp_path}/runs/server/server", "./server", "--port", "1",
    ]  # fmt: skip


def test_each_option_is_nsys_own(tmp_path: Path) -> None:
    run = nsys_run(
        tmp_path,
        cuda_graph_nodes=True,
        delay=2.4,
        duration=0.2,
        profile_range=True,
        nsys_opts="--gpu-metrics-devices=0 -w true",
    )
    assert run.line("nsys", pytorch=True)[6:-3] == [
        "--cuda-graph-trace=node", "--pytorch=autograd-shapes-nvtx", "--delay=2", "--duration=1",
        "--capture-range=cudaProfilerApi", "--capture-range-end=stop", "--gpu-metrics-devices=0", "-w", "true",
    ]  # fmt: skip
    assert "--pytorch=autograd-shapes-nvtx" not in nsys_run(tmp_path, mode=RunMode.simple).line("nsys", pytorch=True)


@pytest.fixture
def run(monkeypatch, tmp_path: Path) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, ["run", *map(str, args)])


def test_without_nsys_one_sentence_says_what_to_install(run, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tb_dlprof_plugin.cli.run.under_nsys.find_nsys", lambda: None)
    result = run("--nsys", "--", "true")
    assert result.exit_code == 2
    assert "there is no nsys on PATH; install Nsight Systems" in result.stderr
    assert not (tmp_path / "runs" / "true").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--nsys", "--iter-start", 3, "--delay", 2], "--nsys records iterations or a time"),
        (["--nsys", "--reports", "all"], "--nsys writes no reports"),
        (["--cuda-graph-nodes"], "are for --nsys"),
    ],
)
def test_options_that_do_not_go_together_are_named(run, options: list[object], sentence: str) -> None:
    result = run(*options, "--", "true")
    assert (result.exit_code, sentence in result.stderr) == (2, True)


def nsys_that(tmp_path: Path, monkeypatch, profile: str) -> None:
    """A program in place of nsys, which this machine need not have: it exports a database that was made before."""
    database = NsysDatabase(tmp_path / "made.sqlite")
    database.range("forward", 0, 20)
    database.launch("k", 2, 30, 5)
    program = tmp_path / "nsys"
    program.write_text(
        f'#!/bin/sh\ncase "$1 $2" in "profile --help") exit 0;; esac\n'
        f'for a; do case "$a" in --output=*) out="${{a#--output=}}";; esac; done\n'
        f'if [ "$1" = profile ]; then {profile}; fi\n'
        f'while [ "$1" != --output ]; do shift; done; cp "{database.write()}" "$2"\n'
    )
    program.chmod(0o755)
    for module in ("cli.run.under_nsys", "readers.nsys.report_file"):
        monkeypatch.setattr(f"tb_dlprof_plugin.{module}.find_nsys", lambda: str(program))


def test_the_report_becomes_a_run_and_the_status_is_the_program_s(run, monkeypatch, tmp_path: Path) -> None:
    nsys_that(tmp_path, monkeypatch, ': > "$out.nsys-rep"; exit 3')
    result = run("--nsys", "--run-name", "mine", "--", "true")
    assert result.exit_code == 3
    (stored,) = read_profiles(tmp_path / "runs" / "mine")
    assert (stored.profile.source.format, len(stored.profile.launches)) == ("nsys", 1)
    report = tmp_path / "runs" / "mine" / "mine.nsys-rep"
    # A report that is there is never written over.
    report.write_text("mine")
    assert run("--nsys", "--run-name", "mine", "--force", "--", "true").exit_code == 3
    assert len(read_profiles(report.parent)) == 1
    assert (report.read_text(), (report.parent / "mine-2.nsys-rep").exists()) == ("mine", True)


def test_without_a_report_the_run_fails(run, monkeypatch, tmp_path: Path) -> None:
    nsys_that(tmp_path, monkeypatch, "exit 0")
    result = run("--nsys", "--", "true")
    assert result.exit_code == 1
    assert not (tmp_path / "runs" / "true").exists()


TRAINING = """
import types, torch
from tb_dlprof_plugin.capture.launcher import nsys_steps

said = []
note = lambda what: lambda *rest: said.append((what, *rest)) or 1
torch.cuda.synchronize = lambda: None
torch.cuda.cudart = lambda: types.SimpleNamespace(cudaProfilerStart=note("start"), cudaProfilerStop=note("stop"))
torch.cuda.nvtx.range_start, torch.cuda.nvtx.range_end = note("begin"), note("end")

class emit_nvtx:
    def __init__(self, record_shapes): said.append(("ranges", record_shapes))
    def __enter__(self): return self
    def __exit__(self, *why): said.append(("no ranges",))

nsys_steps.emit_nvtx = emit_nvtx
weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(14):
    said.append(("step", step))
    weight.square().sum().backward()
    optimizer.step()
open("said.txt", "w").write(chr(10).join(" ".join(map(str, one)) for one in said))
"""


def test_iterations_of_a_training_are_counted_recorded_and_timed_around(run, monkeypatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    runs_the_script = '( while [ "${1%/python*}" = "$1" ]; do shift; done; "$@" )'
    nsys_that(tmp_path, monkeypatch, runs_the_script + '; : > "$out.nsys-rep"; exit 0')
    (tmp_path / "train.py").write_text(TRAINING)
    result = run("--nsys", "--iter-start", 6, "--iter-stop", 7, "train.py")
    assert result.exit_code == 0, result.output
    said = (tmp_path / "said.txt").read_text().splitlines()
    first = said.index("start")
    assert said[first - 1 : first + 9] == [
        "step 5", "start", "ranges True", "begin ProfilerStep#6", "step 6", "end 1", "begin ProfilerStep#7", "step 7",
        "end 1", "no ranges",
    ]  # fmt: skip
    (stored,) = read_profiles(tmp_path / "runs" / "train")
    facts = stored.profile.facts
    assert (len(facts.unprofiled_before_ns), len(facts.unprofiled_after_ns)) == (4, 6)


def test_what_trains_nothing_is_told_of(run, monkeypatch, tmp_path: Path) -> None:
    nsys_that(tmp_path, monkeypatch, "exit 0")
    result = run("--nsys", "--iter-start", 6, "--", "true")
    assert result.exit_code == 1
    assert "did not import" in result.stderr
    assert "without --iter-start and --iter-stop the whole program is recorded" in result.stderr
