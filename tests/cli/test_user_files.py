"""What commands replace and remove: the files of the run itself, and never another file of the user.

A stored profile is untrusted: a colleague's event files name the user's files as their traces in every way there is.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.api.import_job import import_job
from tb_dlprof_plugin.capture.analysis_job import remove_job_folder
from tb_dlprof_plugin.capture.launcher.protocol import Analysis, ProcessStatus
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.run.framework_recordings import import_recordings
from tb_dlprof_plugin.cli.run.results import wait_for_analyses
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.readers.trace_names import ORIGINALS
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_folder import RunFolder

WORKER, TIME = "host_17", "1700000000123456789"
RECORDED = f"{WORKER}.{TIME}"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, list(map(str, args)))


@pytest.fixture
def trace(training, tmp_path: Path) -> Path:
    (tmp_path / "old").mkdir()
    made: Path = training(steps=1).write("w.pt.trace.json").rename(tmp_path / "old" / "w.pt.trace.json")
    return made


def state(folder: Path) -> dict[str, bytes | str]:
    """Everything below a folder: content of files, targets of links."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found


def of(profile: Profile, trace_file: str, worker: str = WORKER) -> Profile:
    """The profile as if it was made from that trace."""
    return dataclasses.replace(
        profile, source=dataclasses.replace(profile.source, trace_file=trace_file, worker=worker)
    )


def plant(tmp_path: Path, folder: Path, profile: Profile) -> list[Path]:
    """A run's folder with event files that name all of the user's files as traces; the event files."""
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    mine = [
        thesis / "thesis.tex", thesis / "thesis.pt.trace.json", thesis / f"{RECORDED}.pt.trace.json",
        thesis / "new\nline.pt.trace.json", folder.parent / "notes.txt", folder.parent / f"{RECORDED}.pt.trace.json",
        folder / "notes.txt", folder / "mine.pt.trace.json", folder / "kineto" / "mine.trace.json",
        folder / f"{RECORDED}.txt", folder / f".{RECORDED}.pt.trace.json", folder / "below" / "notes.txt",
    ]  # fmt: skip
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"mine: {path.name}")
    # Links under names of ours, and a folder behind one.
    (folder / f"{WORKER}.{int(TIME) + 1}.pt.trace.json").symlink_to(thesis / "thesis.tex")
    (folder / "linked").symlink_to(thesis)
    (folder / "events.out.tfevents.1700000000.000000001.link.tb_dlprof").symlink_to(thesis / "thesis.tex")
    names = [
        *map(str, mine),
        *(os.path.relpath(path, folder) for path in mine),
        *(f"kineto/../{os.path.relpath(path, folder)}" for path in mine),
        f"{WORKER}.{int(TIME) + 1}.pt.trace.json", "linked/thesis.tex", f"linked/{RECORDED}.pt.trace.json",
        "", ".", "..", "/", "below", "kineto", "../", "notes.txt\0", str(thesis), "~/thesis", "*",
    ]  # fmt: skip
    planted = [write_profile(folder, of(profile, name)) for name in names]
    # What says that the hook's worker made the user's own trace.
    planted += [write_profile(folder, of(profile, "mine.pt.trace.json", worker)) for worker in ("mine", "", "min")]
    return planted


def without(found: dict[str, bytes | str], tmp_path: Path, removed: list[Path]) -> dict[str, bytes | str]:
    names = {path.relative_to(tmp_path).as_posix() for path in removed}
    return {name: content for name, content in found.items() if name not in names}


# ---- stored profiles


def test_replacing_a_run_removes_what_the_hook_wrote_there_and_nothing_that_a_profile_names(
    cpu_trace, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path / "logs", "train_try/baseline")
    planted = plant(tmp_path, run.path, cpu_trace.profile())
    # GIVEN a real recording in the same folder, with the trace and its copy
    ours = [
        write_profile(run.path, of(cpu_trace.profile(), f"kineto/{RECORDED}.trace.json")),
        run.path / f"{RECORDED}.pt.trace.json.gz",
        run.path / "kineto" / f"{RECORDED}.trace.json",
    ]
    for path in ours[1:]:
        path.write_text("{}")
    before = state(tmp_path)
    _, removed = run.replace(lambda: None, run.recorded_files())
    assert state(tmp_path) == without(before, tmp_path, [*planted, *ours])
    assert sorted(run.path / name for name in removed) == sorted([*planted, *ours])


@pytest.mark.long
def test_a_forced_run_leaves_the_files_that_a_stored_profile_names(cpu_trace, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from support.script_runs import run as record
    from support.script_runs import write

    folder = tmp_path / "logs" / "train"
    planted = plant(tmp_path, folder, cpu_trace.profile())
    script = write(tmp_path, "train(6, model, optimizer)\n")
    before = state(tmp_path)
    done = record(
        "--logdir", "logs", "--force", "--iter-start", 3, "--iter-stop", 4, script, cwd=tmp_path
    )  # fmt: skip
    assert done.status == 0, done.err
    after = state(tmp_path)
    kept = without(before, tmp_path, planted)
    assert {name: after.get(name) for name in kept} == kept
    assert [name for name in after if name.endswith(".tb_dlprof") and name not in kept]
    assert not any(path.exists() for path in planted)
    assert "was replaced; removed: " in done.err
    assert all(path.name in done.err for path in planted)


@pytest.mark.long
def test_try_leaves_the_files_that_a_stored_profile_names(cpu_trace, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from support.script_runs import TB_DLPROF, execute, write

    planted = plant(tmp_path, tmp_path / "logs" / "train_try" / "baseline", cpu_trace.profile())
    script = write(tmp_path, "while True:\n    train(8, model, optimizer)\n")
    before = state(tmp_path)
    done = execute(
        *TB_DLPROF, "try", "--logdir", "logs", "--remedies", "foreach_optimizer", "--budget", "6s", script,
        cwd=tmp_path, XDG_DATA_HOME=str(tmp_path / "data"),
    )  # fmt: skip
    assert done.status == 0, done.err
    after = state(tmp_path)
    kept = without(before, tmp_path, planted)
    assert {name: after.get(name) for name in kept} == kept
    assert not any(path.exists() for path in planted)


# ---- a run is its own folder


def test_a_forced_import_leaves_runs_below_it_and_other_files(run, trace: Path, training, tmp_path: Path) -> None:
    for name in ("mlp", "mlp/fp32", "mlp/fp32/deep", "mlp2"):
        assert run("import", trace, "--logdir", "logs", "--run", name).exit_code == 0
    (old,) = (tmp_path / "logs" / "mlp").glob("*.tb_dlprof")
    for name in ("notes.txt", "events.out.tfevents.1700000000.host", f"{RECORDED}.pt.trace.json", "x.tb_dlprof"):
        (old.parent / name).write_text("mine")
    before = state(tmp_path)
    # The refusal names what would be removed.
    refused = run("import", trace, "--logdir", "logs", "--run", "mlp")
    assert refused.exit_code == 2
    assert "logs/mlp already has 1 profile; give another --run, or --force, which removes 1 file" in refused.stderr
    assert f"({old.name}) and nothing else" in refused.stderr
    assert state(tmp_path) == before
    done = run("import", trace, "--logdir", "logs", "--run", "mlp", "--force")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == f"tb-dlprof: logs/mlp was replaced; removed: {old.name}.\n"
    (new,) = old.parent.glob("events*.tb_dlprof")
    assert without(state(tmp_path), tmp_path, [new]) == without(before, tmp_path, [old])


def test_a_run_above_others_is_no_run_that_exists(run, trace: Path, tmp_path: Path) -> None:
    run("import", trace, "--logdir", "logs", "--run", "mlp/fp32")
    before = state(tmp_path)
    done = run("import", trace, "--logdir", "logs", "--run", "mlp")
    assert (done.exit_code, done.stderr) == (0, "")
    assert {name: state(tmp_path)[name] for name in before} == before


def test_a_second_import_of_a_job_leaves_runs_below_it(trace: Path, tmp_path: Path) -> None:
    for name in ("mlp", "mlp/fp32"):
        import_job(trace, tmp_path / "logs", engine="here", run=name)
    below = state(tmp_path / "logs" / "mlp" / "fp32")
    os.utime(trace, (1, 1))
    import_job(trace, tmp_path / "logs", engine="here", run="mlp")
    assert state(tmp_path / "logs" / "mlp" / "fp32") == below
    assert len(list((tmp_path / "logs" / "mlp").glob("*.tb_dlprof"))) == 1


def test_an_import_that_cannot_be_written_whole_removes_nothing(
    run, trace: Path, training, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("import", trace, "--logdir", "logs", "--run", "mlp")
    other = training(steps=2).write("other.pt.trace.json")
    before = state(tmp_path)
    replace, calls = os.replace, []

    def full(*paths: object) -> None:
        calls.append(paths)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        replace(*paths)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "replace", full)
    done = run("import", trace, other, "--logdir", "logs", "--run", "mlp", "--force")
    assert (done.exit_code, len(calls)) == (2, 2)
    assert "logs/mlp cannot be written (No space left on device)" in done.stderr
    assert state(tmp_path) == before


def test_a_run_behind_a_link_is_not_replaced(run, trace: Path, tmp_path: Path) -> None:
    run("import", trace, "--logdir", "elsewhere", "--run", "mlp/fp32")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "mlp").symlink_to(tmp_path / "elsewhere" / "mlp")
    before = state(tmp_path)
    for command in (("import", trace), ("run", trace.with_suffix(".py"))):
        trace.with_suffix(".py").write_text("")
        before = state(tmp_path)
        option = "--run" if command[0] == "import" else "--run-name"
        done = run(command[0], "--logdir", "logs", option, "mlp/fp32", "--force", command[1])
        assert done.exit_code == 2
        assert "logs/mlp is a link to " in done.stderr
        assert state(tmp_path) == before
    # A log directory that is a link itself was named by the user.
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert run("import", trace, "--logdir", "link", "--run", "mlp/fp32", "--force").exit_code == 0
    assert len(read_profiles(tmp_path / "elsewhere")) == 1


# ---- names of runs


@pytest.mark.parametrize("name", ["../up", "ABSOLUTE", "a/../../b", "..", " ", "a\0b"])
def test_a_name_that_leads_out_of_the_log_directory_is_refused(run, trace: Path, tmp_path: Path, name: str) -> None:
    name = name.replace("ABSOLUTE", str(tmp_path / "mlp"))
    before = state(tmp_path)
    done = run("import", trace, "--logdir", "logs", "--run", name)
    assert done.exit_code == 2
    assert "is not the name of a directory below the logdir" in done.stderr
    assert run("import", trace, "--logdir", "logs", "--run", name, "--engine", "here").exit_code == 2
    assert state(tmp_path) == before


@pytest.mark.parametrize("dots", [".", "..", "..."])
@pytest.mark.parametrize("ending", [".pt.trace.json.gz", ".json"])
def test_a_file_whose_name_is_dots_becomes_a_run_below_the_logdir(
    run, training, tmp_path: Path, dots: str, ending: str
) -> None:
    (tmp_path / "old").mkdir()
    made = training(steps=1).write(f"made{ending}").rename(tmp_path / "old" / f"{dots}{ending}")
    done = run("import", made, "--logdir", "here/logs")
    assert done.exit_code == 0, done.stderr
    (stored,) = read_profiles(tmp_path)
    assert stored.path.parent == tmp_path / "here" / "logs" / made.name


# ---- at once


@pytest.mark.long
def test_imports_at_once_leave_one_profile(trace: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "tb_dlprof_plugin.cli.main", "import", trace, "--logdir", "logs", "--run", "mlp",
        "--force",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    assert subprocess.run(command, cwd=tmp_path, env=env, check=False).returncode == 0
    going = [subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate()[1] for process in going]
    assert [process.returncode for process in going] == [0] * 4, said
    assert len(list((tmp_path / "logs" / "mlp").iterdir())) == 1


def test_a_run_that_is_recorded_is_left_to_its_command(
    run, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tb_dlprof_plugin.store.run_folder._PATIENCE_S", 0.0)
    (tmp_path / "mlp.py").write_text("print('started')")
    with RunFolder(tmp_path / "logs", "mlp").locked():
        done = run("import", trace, "--logdir", "logs", "--run", "mlp")
        assert (done.exit_code, "another tb-dlprof writes logs/mlp" in done.stderr) == (2, True)
        named = run("run", "--logdir", "logs", "--run-name", "mlp", "mlp.py")
        assert (named.exit_code, "another tb-dlprof writes logs/mlp" in named.stderr) == (2, True)
        # Without a name the next one is taken.
        other = run("run", "--logdir", "logs", "mlp.py")
        assert "another tb-dlprof" not in other.stderr
    assert list((tmp_path / "logs" / "mlp").iterdir()) == []
    assert run("import", trace, "--logdir", "logs", "--run", "mlp").exit_code == 0


# ---- what the script's processes say of themselves


def test_paths_in_the_status_of_a_process_remove_nothing(tmp_path: Path) -> None:
    folder, thesis = tmp_path / "runs" / "train", tmp_path / "thesis"
    (folder / "kineto").mkdir(parents=True)
    thesis.mkdir()
    for path in (thesis / "job.json", thesis / "stderr.log", thesis / "a.xplane.pb", folder / "notes.txt"):
        path.write_text("mine")
    (folder / ".recording.link").symlink_to(thesis)
    waiting = folder / f".{RECORDED}.waiting.json"
    waiting.write_text("{}")
    before = state(tmp_path)
    paths = [str(thesis), str(thesis / "job.json"), str(folder / "notes.txt"), f"{folder}/.recording.link", ".", ""]
    analyses = [Analysis(2**30, str(thesis), path, str(folder / "kineto" / "x.trace.json.gz")) for path in paths]
    processes = [ProcessStatus(1, phase="recorded", folder=path, analyses=analyses) for path in paths]
    assert len(wait_for_analyses(processes, folder, False)) == len(paths) ** 2
    assert import_recordings(processes, folder, "s") == []
    assert state(tmp_path) == before
    # The trace itself gets its name, which other tools read.
    failed = Analysis(2**30, str(thesis), str(waiting), str(folder / f"{RECORDED}.pt.trace.json.gz"))
    (sentence,) = wait_for_analyses([ProcessStatus(1, analyses=[failed])], folder, False)
    assert str(folder / f"{RECORDED}.pt.trace.json") in sentence
    assert (folder / f"{RECORDED}.pt.trace.json").read_text() == "{}"


def test_an_analysis_removes_its_own_files_from_its_folder(tmp_path: Path) -> None:
    for name in ("job.json", "stderr.log", "thesis.tex"):
        (tmp_path / name).write_text("")
    remove_job_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_was_recorded_elsewhere_is_copied_into_the_run_beside_the_files_of_the_user(
    cpu_trace, tmp_path: Path
) -> None:
    recorded, run = tmp_path / "recorded", RunFolder(tmp_path / "logs", "train_try/tf32")
    write_profile(recorded, of(cpu_trace.profile(), f"{RECORDED}.pt.trace.json"))
    (recorded / ORIGINALS).mkdir()
    (recorded / ORIGINALS / f"{RECORDED}.trace.json").write_text("{}")
    run.path.mkdir(parents=True)
    (run.path / "notes.txt").write_text("mine")
    run.take(recorded)
    assert len(run.event_files()) == 1
    assert (run.path / ORIGINALS / f"{RECORDED}.trace.json").read_text() == "{}"
    assert (run.path / "notes.txt").read_text() == "mine"


# ---- files at the place of an output


def test_no_trace_is_written_over_by_its_copy(run, trace: Path, training, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "mlp"
    folder.mkdir(parents=True)
    packed = training(steps=1).write("w.1.pt.trace.json.gz").rename(folder / "w.1.pt.trace.json.gz")
    before = state(tmp_path)
    done = run("import", packed, "--logdir", "logs", "--run", "mlp", "--pytorch-views")
    assert done.exit_code == 2
    assert "w.1.pt.trace.json.gz exists, and is no copy for the PyTorch Profiler tab" in done.stderr
    again = run("pytorch-views", packed, "--to", folder)
    assert (again.exit_code, "is no copy" in again.stderr) == (2, True)
    assert state(tmp_path) == before
    # A copy is made again.
    assert run("pytorch-views", trace, "--to", "copies").exit_code == 0
    assert run("pytorch-views", trace, "--to", "copies").exit_code == 0


def test_a_patch_is_written_to_a_new_file_only(run, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "train.py").write_text("")
    before = state(tmp_path)
    for name in ("thesis.tex", "link"):
        done = run("try", "--write-patch", name, "train.py")
        assert (done.exit_code, done.stderr) == (
            2, f"tb-dlprof: {name} exists already; name a new file with --write-patch.\n",
        )  # fmt: skip
    assert state(tmp_path) == before
