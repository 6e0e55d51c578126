"""``tb-dlprof run``: what it refuses, where it writes, what it says, and that it stays out of the script's way."""

from __future__ import annotations

import contextlib
import csv
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

from support.marks import long
from support.script_runs import (
    SCRIPTS,
    TB_DLPROF,
    Done,
    environment,
    execute,
    numbers,
    profiles,
    run,
    write,
)
from typer.testing import CliRunner

from tb_dlprof_plugin import distributed
from tb_dlprof_plugin.capture.launcher.protocol import RunRequest
from tb_dlprof_plugin.cli.fail_on import FailOn
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.run import script as script_process
from tb_dlprof_plugin.cli.run import session as session_module
from tb_dlprof_plugin.cli.run.options import RunOptions
from tb_dlprof_plugin.cli.run.output_dir import OutputDirectory, script_name
from tb_dlprof_plugin.cli.run.results import Written, job_of_written, read_written
from tb_dlprof_plugin.cli.run.session import RunSession
from tb_dlprof_plugin.cli.run.summary import print_summary, print_totals, print_where
from tb_dlprof_plugin.store import run_folder
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.run_files import RunFile
from tb_dlprof_plugin.store.run_folder import RunFolder

INTERRUPT = textwrap.dedent("""
    import os, signal
    # In a job in the background Python ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.kill(os.getpid(), signal.SIGINT)
""")

LOOP = textwrap.dedent("""
    import signal, time

    steps = 0
    try:
        while True:
            train(1, model, optimizer)
            time.sleep(0.01)
            steps += 1
            if steps in (1, 40):
                print(f"{steps} steps", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
""")
"""Trains until it is ended."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """A run with all that can be written, and its folder."""
    folder = tmp_path_factory.mktemp("recorded")
    script = write(folder, "train(26, model, optimizer)\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)\n")
    return folder, run(
        "--reports", "summary,iteration,op_type", "--formats", "csv,json", "--output-path", "new/reports",
        "--base-name", "my name", "--dump-model-data", script, cwd=folder,
    )  # fmt: skip


# ---- what is refused, before anything is started


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "name a script, as in `tb-dlprof run train.py`"),
        (("nowhere.py",), "nowhere.py was not found in "),
        (("no-such-command", "x"), "no-such-command was not found in "),
        (("folder",), "folder is a directory; name the script in it"),
        (("--delay", "-1", "train.py"), "--delay is -1; it must be 0 seconds or more"),
        (("--duration", "0", "train.py"), "--duration is 0; it must be more than 0 seconds"),
        (("--iter-start", "-2", "train.py"), "--iter-start is -2; iterations are counted from 0"),
        (("--iter-start", "5", "--iter-stop", "4", "train.py"), "--iter-stop 4 comes before --iter-start 5"),
        (("--profile-range", "--delay", "3", "train.py"), "leave out --delay, --iter-start and --iter-stop"),
        (("--reports", "sumary", "train.py"), "no report sumary; there is summary, detail"),
        (("--formats", "xml", "train.py"), "no format xml; there is csv, json"),
        (("--mode", "simple", "--reports", "detail", "train.py"), "--mode simple has the kernel report only"),
        (("--run-name", "../up", "train.py"), "--run-name '../up' is not the name of a directory below the logdir"),
        (("--logdir", "/proc/runs", "train.py"), "/proc/runs/train cannot be written ("),
        (("--logdir", "train.py", "train.py"), "train.py/train cannot be written (Not a directory); choose another"),
        (("--logdir", ".", "--run-name", "train.py", "train.py"), "train.py is a file, where the run's directory"),
        (("--reports", "all", "--output-path", "/proc/out", "train.py"), "choose another --output-path"),
    ],
)
def test_what_cannot_work_is_refused_with_what_to_do(tmp_path: Path, monkeypatch, arguments, sentence: str) -> None:
    (tmp_path / "folder").mkdir()
    write(tmp_path, "print('started')", training=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "runs").exists() or list((tmp_path / "runs").iterdir()) == []


def test_a_logdir_that_may_not_be_listed_is_refused_before_the_script_starts(tmp_path: Path, monkeypatch) -> None:
    def closed(directory: Path) -> list[RunFile]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(run_folder, "event_files_in", closed)
    write(tmp_path, "print('started')", training=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["run", "train.py"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "tb-dlprof: runs/train cannot be written (Permission denied); choose another --logdir.\n"


def test_a_file_that_cannot_be_executed_is_told(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("\x7fELF, but no more")
    (tmp_path / "program").chmod(0o755)
    done = run("./program", cwd=tmp_path)
    assert done.status == 2
    assert "./program cannot be started" in done.err


def test_a_script_without_torch_is_one_sentence(tmp_path: Path) -> None:
    script = write(tmp_path, "print('out')", training=False)
    done = run(script, cwd=tmp_path)
    assert (done.status, done.out) == (0, "out\n")
    assert "train.py did not import torch, jax or tensorflow, so nothing was recorded" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import a_package_that_is_missing\nimport torch\n",
            "train.py ended with status 1, and no import of torch, jax or tensorflow was seen",
        ),
        long(INTERRUPT + "import torch\n", "train.py was interrupted, and no"),
        long(
            "import os\nos.kill(os.getpid(), 15)\n",
            "train.py was ended by SIGTERM, and no import of torch, jax or tensorflow was seen",
        ),
        (
            "import torch\n",
            "train.py did not get past the import of torch, so nothing was recorded: ImportError: no CUDA.",
        ),
    ],
)
def test_a_script_that_ends_while_it_imports_is_not_said_to_be_without_torch(
    tmp_path: Path, code: str, sentence: str
) -> None:
    # Found before the installed one; a script's own directory is the first place where Python looks.
    (tmp_path / "torch.py").write_text("raise ImportError('no CUDA')\n")
    script = write(tmp_path, code, training=False)
    done = run(script, cwd=tmp_path)
    assert done.status != 0
    assert sentence in done.err
    assert "did not import torch" not in done.err


@pytest.mark.long
def test_an_interrupt_within_the_import_of_torch_is_told(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(INTERRUPT)
    script = write(tmp_path, "import torch\n", training=False)
    done = run(script, cwd=tmp_path)
    assert done.status == -signal.SIGINT
    assert "did not get past the import of torch, so nothing was recorded: it was interrupted." in done.err
    assert not list((tmp_path / "runs").iterdir())


# ---- the script's own words


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python", "train.py", "data.py"], "train.py"),
        (["torchrun", "--nproc-per-node", "2", "a/train.py"], "train.py"),
        (["python", "-m", "pkg.train", "--x"], "pkg.train"),
        (["/bin/go.sh"], "go.sh"),
    ],
)
def test_the_script_is_known_by_its_name(command, name: str) -> None:
    assert script_name(command) == name


@pytest.mark.slow
def test_arguments_environment_and_standard_input_pass_through(tmp_path: Path) -> None:
    text = """
        import os, sys
        print(sys.argv, sys.stdin.read(), os.environ["MINE"], sys.argv[0] == __file__, __name__)
    """
    script = write(tmp_path, text, training=False)
    words = ["--logdir", "x", "--", "--help", "-v", "a b", ""]
    env = environment(MINE="yes")
    options = {"capture_output": True, "text": True, "input": "typed", "cwd": tmp_path, "env": env}
    plain = subprocess.run([sys.executable, script, *words], **options)
    profiled = subprocess.run([*TB_DLPROF, "run", "-v", "quiet", script, *words], **options)
    assert plain.stdout == profiled.stdout
    assert "typed yes True __main__" in plain.stdout


@pytest.mark.slow
def test_output_and_status_are_the_scripts_own(recorded) -> None:
    _, done = recorded
    assert (done.status, done.out) == (3, "out\n")
    assert "err\n" in done.err


# ---- signals


@contextlib.contextmanager
def started(folder: Path, *options: str, prepare: str = "", training: bool = True) -> Iterator[subprocess.Popen[str]]:
    """A script that trains until it is ended, after its first step. Whatever is left of it at the end is killed."""
    script = write(folder, prepare + LOOP, training=training)
    process = subprocess.Popen(
        [*TB_DLPROF, "run", "--run-name", "r", *options, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, start_new_session=True,
        # Of tests that run in the background of a shell, children ignore interrupts; Python then leaves them so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "1 steps\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_ctrl_c_ends_the_script_and_what_was_recorded_is_kept(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stdout.readline() == "40 steps\n"
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (-signal.SIGINT, "interrupted\n")
    assert "KeyboardInterrupt" in err
    (profile,) = profiles(tmp_path / "runs" / "r")
    assert numbers(profile) == list(range(12, 22))


@pytest.mark.long
def test_sigterm_reaches_the_script(tmp_path: Path) -> None:
    # Nothing of ours in the script handles signals, so that it needs no training.
    with started(tmp_path, prepare="model = optimizer = None\ntrain = lambda *_: None\n", training=False) as process:
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


@pytest.mark.long
def test_a_script_that_handles_sigterm_ends_as_it_likes(tmp_path: Path) -> None:
    # print() in a handler fails where the signal comes within another print().
    handler = """
        import os, signal

        def save(*_):
            os.write(1, b"saving\\n")
            sys.exit(7)

        signal.signal(signal.SIGTERM, save)
    """
    with started(tmp_path, prepare=textwrap.dedent(handler)) as process:
        os.kill(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    # A signal within the writing of a line is handled before the rest of that line is written.
    assert (process.returncode, set(out.splitlines()) - {"40 steps"}) == (7, {"saving"})


@pytest.mark.slow
def test_duration_writes_the_profile_and_stops_the_script(tmp_path: Path) -> None:
    script = write(tmp_path, LOOP)
    done = run("--run-name", "r", "--duration", "1", script, cwd=tmp_path)
    assert done.status == 0
    assert "are recorded; the script is stopped." in done.err
    (profile,) = profiles(tmp_path / "runs" / "r")
    recorded_ns = int(profile.iterations.host_stop_ns[-1] - profile.iterations.host_start_ns[0])
    assert recorded_ns > 0.9e9


@pytest.mark.slow
def test_a_script_that_does_not_mind_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_process, "_GRACE_S", 0.5)
    begun = tmp_path / "begun"
    stubborn = f"""
import signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({str(begun)!r}, "w").close()
time.sleep(600)
"""
    script = script_process.Script([sys.executable, "-c", stubborn], tmp_path)

    def stop_it() -> None:
        if begun.exists():
            script.stop()

    assert script.wait(stop_it) == -signal.SIGKILL


@pytest.mark.long
def test_what_was_recorded_of_a_script_that_is_killed_is_kept(tmp_path: Path) -> None:
    script = write(tmp_path, "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LOOP)
    done = run("--run-name", "r", "--duration", "0.3", script, cwd=tmp_path)
    assert done.status == 0
    assert len(profiles(tmp_path / "runs" / "r")) == 1


@pytest.mark.long
def test_delay_begins_after_that_time(tmp_path: Path) -> None:
    ended = textwrap.dedent("""
        import time

        ended, train_once = open("ended", "w", buffering=1), train

        def train(*arguments):
            train_once(*arguments)
            ended.write(f"{time.time()}\\n")
    """)
    script = write(tmp_path, ended + LOOP)
    over = time.time() + 12
    run("--run-name", "r", "--delay", "12", "--duration", "0.3", script, cwd=tmp_path)
    (profile,) = profiles(tmp_path / "runs" / "r")
    first_s = profile.base_time_unix_ns / 1e9 + float(profile.iterations.host_start_ns[0]) / 1e9
    assert first_s > over
    # How many there are depends on how fast the machine is.
    before = sum(float(line) < over for line in (tmp_path / "ended").read_text().splitlines())
    assert numbers(profile)[0] >= before


# ---- torchrun


@pytest.mark.long
def test_torchrun_records_every_rank_and_the_training_is_the_same(tmp_path: Path) -> None:
    command = ("torchrun", "--nproc-per-node", 2, "--master-port", 29533, SCRIPTS / "imagenet.py", "--epochs", 1)
    torchrun = Path(sys.executable).parent / "torchrun"
    plain = execute(torchrun, *command[1:], "--batches", 24, "--save", "plain.pt", cwd=tmp_path)
    done = run("--run-name", "r", "--", *command, "--batches", 24, "--save", "profiled.pt", cwd=tmp_path)
    assert (done.status, done.out) == (0, plain.out)
    found = profiles(tmp_path / "runs" / "r")
    assert [(profile.source.rank, profile.facts.world_size) for profile in found] == [(0, 2), (1, 2)]
    assert [numbers(profile) for profile in found] == [list(range(12, 22))] * 2
    assert len({profile.source.session for profile in found}) == 1
    assert "\n  All ranks: " in done.err
    assert "tb-dlprof distributed runs/r" in done.err
    assert (tmp_path / "plain.pt").read_bytes()[:2] == (tmp_path / "profiled.pt").read_bytes()[:2]
    import torch

    weights = [torch.load(tmp_path / name) for name in ("plain.pt", "profiled.pt")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("planted", "cause"),
    [
        ("pass", ""),
        ("time.sleep(0.06)", "slow_host"),
        ("more(batch.repeat(64, 16))", "uneven_data"),
        ("junk = [[number] for number in range(200_000)]; gc.collect()", "garbage_collection"),
    ],
)
def test_the_late_process_of_torchrun_is_named(tmp_path: Path, planted: str, cause: str) -> None:
    write(
        tmp_path,
        f"""
        import gc, time, torch.distributed as dist
        dist.init_process_group("gloo")
        late = dist.get_rank() == 1
        parallel = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1)
        layers = nn.Sequential(*[nn.Linear(128, 128) for _ in range(60)])

        def more(inputs):
            with torch.no_grad():
                layers(inputs.repeat(8, 1))

        for batch, target in DataLoader(TensorDataset(torch.randn(104, 8), torch.zeros(104).long()), batch_size=4):
            if late:
                {planted}
            optimizer.zero_grad()
            nn.functional.cross_entropy(parallel(batch), target).backward()
            optimizer.step()
        dist.destroy_process_group()
        """,
    )
    torchrun = ("torchrun", "--nproc-per-node", 2, "--master-port", 29537)
    done = run("--run-name", "r", "--", *torchrun, "train.py", cwd=tmp_path)
    assert done.status == 0, done.err
    job = distributed(tmp_path / "runs" / "r")
    assert [(one.rank, one.cause) for one in job.delays if one.certain] == ([(1, cause)] if cause else [])
    assert "2 processes compute " in job.sentence
    for row in job.account:
        parts = (row.compute_ms, row.transfer_ms, row.waiting_ms or 0.0, row.bubble_ms, row.host_ms)
        assert sum(parts) == pytest.approx(row.step_ms, abs=1e-9)


# ---- where it writes


@pytest.mark.slow
def test_reports_and_model_data_are_written(recorded) -> None:
    folder, done = recorded
    names = {path.name for path in (folder / "new" / "reports").iterdir()}
    assert names == {
        "my_name_summary.csv", "my_name_summary.json", "my_name_iteration.csv", "my_name_iteration.json",
        "my_name_op_type.csv", "my_name_op_type.json", "my_name_model_data.json",
    }  # fmt: skip
    assert list(csv.reader((folder / "new/reports/my_name_op_type.csv").open()))[1:]
    assert "my_name_model_data.json" in done.err


@pytest.mark.slow
def test_the_model_data_are_the_calls_of_the_profile(recorded) -> None:
    folder, _ = recorded
    data = json.loads((folder / "new/reports/my_name_model_data.json").read_text())
    (profile,) = profiles(folder / "runs" / "train")
    assert [one["number"] for one in data["iterations"]] == numbers(profile)
    heads = [row for row, op in enumerate(data["ops"]) if op["name"] == "head/linear" and op["direction"] == "fprop"]
    inner = [op for op in data["ops"] if op["name"] == "head/addmm"]
    assert len(heads) == len([op for op in data["ops"] if op["name"] == "head/linear" and not op["inner"]]) - len(
        [op for op in data["ops"] if op["name"] == "head/linear" and op["direction"] == "bprop"]
    )
    assert inner
    assert all(op["inner"] for op in inner)
    assert sum(op in heads for op in data["calls"]["op"]) == len(numbers(profile))
    parents = data["calls"]["parent"]
    for row, parent in enumerate(parents):
        assert parent < row
        if parent >= 0:
            calls = data["calls"]
            assert calls["start_ns"][parent] <= calls["start_ns"][row]


@pytest.fixture
def earlier(tmp_path: Path, cpu_trace) -> Path:
    """The event file of a run "train" that is there already."""
    written: Path = write_profile(tmp_path / "runs" / "train", cpu_trace.profile(session="earlier"))
    return written


@dataclass(frozen=True)
class Repeated:
    """A script of six steps that was run as it is, then as that run advised at its end. A run "train" was before it."""

    folder: Path
    earlier: Path
    first: Done
    numbered: Done
    replaced: Done
    names: list[str]
    """Of the runs before the last."""
    kept: bool
    """Whether the earlier run was still there before the last, which replaces it."""


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory, cpu_trace) -> Repeated:
    """The second time with everything said, the third with --force and little."""
    folder = tmp_path_factory.mktemp("repeated")
    earlier = write_profile(folder / "runs" / "train", cpu_trace.profile(session="earlier"))
    script = write(folder, "train(6, model, optimizer)\n")
    first = run(script, cwd=folder)
    advised = ("--iter_start=3", "--iter-stop", 5)
    numbered = run("--verbosity=verbose", *advised, script, cwd=folder)
    names, kept = sorted(path.name for path in (folder / "runs").iterdir()), earlier.exists()
    replaced = run(
        "-v", "minimal", "--iter-start", 3, "--iter-stop", 5, "--force", "--run-name", "train", script, cwd=folder
    )
    return Repeated(folder, earlier, first, numbered, replaced, names, kept)


@pytest.mark.long
def test_a_taken_name_is_numbered(repeated: Repeated) -> None:
    assert (repeated.first.status, repeated.numbered.status) == (0, 0)
    # The first recorded nothing, and left none.
    assert (repeated.names, repeated.kept) == (["train", "train-2"], True)


def test_a_taken_name_that_is_given_is_refused(tmp_path: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "print('started')", training=False)
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["run", "--run-name", "train", "train.py"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "runs/train already has 1 profile; give another --run-name, or --force, which removes" in refused.stderr
    assert f"({earlier.name}) and nothing else" in refused.stderr
    assert earlier.exists()


@pytest.mark.long
def test_a_taken_name_is_replaced_by_force(repeated: Repeated) -> None:
    assert repeated.replaced.status == 0
    (new,) = profiles(repeated.folder / "runs" / "train")
    assert new.source.session != "earlier"
    assert not repeated.earlier.exists()


@pytest.mark.long
def test_a_forced_run_that_records_nothing_leaves_the_old_one(tmp_path: Path, earlier: Path) -> None:
    write(tmp_path, "print('no torch')", training=False)
    run("-v", "quiet", "--force", "train.py", cwd=tmp_path)
    assert list((tmp_path / "runs" / "train").iterdir()) == [earlier]


# ---- what it says


@pytest.mark.slow
def test_the_end_says_what_was_recorded_what_to_change_and_where_to_look(recorded) -> None:
    folder, done = recorded
    assert "tb-dlprof: train.py, 10 iterations (12 to 21)" in done.err
    assert "Net, FP32" in done.err
    assert " a step, timed without the profiler; " in done.err
    assert "tb-dlprof advise runs/train" in done.err
    assert "tensorboard --logdir runs " in done.err
    summary = execute(*TB_DLPROF, "summary", "runs/train", cwd=folder)
    assert summary.status == 0


@pytest.mark.long
def test_less_can_be_said(repeated: Repeated) -> None:
    run = repeated.folder / "runs" / "train"
    replaced, written = repeated.replaced.err.splitlines()
    assert replaced.startswith(f"tb-dlprof: {run} was replaced; removed: events.out.tfevents.")
    assert written == f"tb-dlprof: the profile is in {run}."


@pytest.mark.long
def test_nothing_can_be_said(tmp_path: Path) -> None:
    script = write(tmp_path, "train(3, model, optimizer)\n")
    assert run("-v", "quiet", "--iter-start", "1", "--iter-stop", "1", script, cwd=tmp_path).err == ""


@pytest.mark.long
def test_more_can_be_said(repeated: Repeated) -> None:
    assert f"tb-dlprof: {sys.executable} {repeated.folder / 'train.py'}" in repeated.numbered.err
    assert "rank 0: 6 optimizer steps, 3 to 5 recorded, Net" in repeated.numbered.err


@pytest.mark.long
def test_all_can_be_said(tmp_path: Path) -> None:
    script = write(tmp_path, "train(3, model, optimizer)\n")
    done = run("--verbosity=diagnostic", "--iter_start=1", "--iter_stop=1", script, cwd=tmp_path)
    assert f"tb-dlprof: {sys.executable} {script}" in done.err
    assert "rank 0: 3 optimizer steps, 1 to 1 recorded, Net" in done.err


@pytest.mark.long
def test_a_script_that_is_too_short_says_which_iterations_there_are(repeated: Repeated) -> None:
    assert (
        "train.py ended after 6 optimizer steps, and the recording begins with number 12, counted from 0: let it run "
        "longer, or give --iter-start 3 --iter-stop 5."
    ) in repeated.first.err
    assert "3 iterations (3 to 5)" in repeated.numbered.err


@pytest.mark.long
def test_a_script_that_fails_before_its_first_step_says_so(tmp_path: Path) -> None:
    done = run(write(tmp_path, "import torch\nraise SystemExit('no data')\n", training=False), cwd=tmp_path)
    assert done.status == 1
    assert "train.py ended with status 1 before it called a model, so nothing was recorded." in done.err


@pytest.mark.long
def test_simple_mode_needs_a_gpu_and_says_so(tmp_path: Path) -> None:
    done = run("--mode", "simple", write(tmp_path, "train(26, model, optimizer)\n"), cwd=tmp_path)
    assert done.status == 0
    assert "--mode simple records GPU kernels, and torch sees no GPU here: leave it out." in done.err


def test_a_gpus_figures_and_findings_are_in_the_summary(gpu_view, ref, capsys) -> None:
    print_summary([Written(gpu_view, ref)], "train.py")
    text = capsys.readouterr().err
    assert "tb-dlprof: train.py, 3 iterations (5 to 7)" in text
    assert "GPU busy " in text
    assert "Tensor Core utilization 0.0 %" in text
    # What is printed of it first is the worst.
    assert "\n  Recording: " in text
    assert "    1. [" in text
    assert "    4. [" not in text


RECORDED_JOB = Path(__file__).parents[2] / "tests" / "data" / "ranks" / "recorded"


def test_the_summary_of_several_ranks_has_the_sentence_of_the_job(capsys) -> None:
    run_directory = RECORDED_JOB / "ddp_slow_gpu"
    written = read_written(RunFolder(RECORDED_JOB, "ddp_slow_gpu"), [])
    job = job_of_written(run_directory, written)
    print_summary(written, "train.py", job=job)
    print_where(run_directory, ranks=len(written))
    text = capsys.readouterr().err
    assert "2 ranks; rank 0:" in text
    assert "\n  All ranks: Rank 1 delays the others, because its GPU is slower" in text
    assert " 2 GPUs compute" in text
    assert "All ranks:  tb-dlprof distributed " in text


def test_one_rank_is_no_job(gpu_view, ref, tmp_path: Path) -> None:
    assert job_of_written(tmp_path, [Written(gpu_view, ref)]) is None


@pytest.mark.parametrize(("status", "expected"), [(0, 1), long(3, 3), long(-15, -15)])
def test_fail_on_straggler_changes_the_status_of_a_script_that_ended_well(
    status: int, expected: int, monkeypatch, tmp_path: Path
) -> None:
    session = _session_of("ddp_slow_gpu", status, monkeypatch, tmp_path, FailOn.straggler)
    assert session.run() == expected
    assert _session_of("ddp_slow_gpu", status, monkeypatch, tmp_path, None).run() == status
    assert _session_of("ddp_even", status, monkeypatch, tmp_path, FailOn.straggler).run() == status


def _session_of(job: str, status: int, monkeypatch, folder: Path, fail_on: FailOn | None) -> RunSession:
    """A session whose script ends with a status and has left the ranks of a recorded job."""

    class Ended:
        stopped = False

        def __init__(self, *_: object) -> None: ...

        def wait(self, look: object) -> int:
            return status

    monkeypatch.setattr(session_module, "Script", Ended)
    output = OutputDirectory(RunFolder(RECORDED_JOB, job), [], "train.py")
    request = RunRequest(str(output.directory), 0.0)
    return RunSession(["train.py"], output, RunOptions(output_path=folder, fail_on=fail_on), request, folder, [], [])


def test_simple_modes_totals(gpu_view, ref, capsys) -> None:
    print_totals([Written(gpu_view, ref)], "train.py")
    lines = [line.split("  ")[-1].strip() for line in capsys.readouterr().err.splitlines()]
    # Three iterations of 740 µs of kernels and 20 of copies, and a kernel of 5 µs that no op launched.
    assert lines[2:5] == ["3.00 ms", "2.29 ms", "0 ns"]


# ---- the command line


@pytest.mark.parametrize(("typed", "completed"), [long("tb-dlprof ru", "run"), ("tb-dlprof run --dur", "--duration")])
def test_the_shell_completes_it(tmp_path: Path, typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1), "_TB_DLPROF_COMPLETE": "complete_bash"}
    program = Path(sys.executable).parent / "tb-dlprof"
    assert completed in execute(program, cwd=tmp_path, **words).out.split()
