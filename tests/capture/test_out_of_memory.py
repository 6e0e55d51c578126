"""The hook explains an out-of-memory error that leaves the training, and is silent about one that is caught.

No GPU runs here: the observer is called as torch calls it, with blocks at the addresses of the tensors of a CPU.
"""

from __future__ import annotations

import _thread
import json
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import TbDlprofWarning, out_of_memory, profile  # noqa: E402
from tb_dlprof_plugin.capture.facts import storages  # noqa: E402
from tb_dlprof_plugin.capture.out_of_memory import explain_oom  # noqa: E402
from tb_dlprof_plugin.readers.memory_snapshot.oom_file import files_in, read_oom  # noqa: E402

REQUEST = (0, 64 << 20, 1 << 30, 1 << 20)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> torch.nn.Module:
    """A model whose tensors count as those of GPU 0, each in a block of its own, with a block more."""
    made = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.BatchNorm1d(256))
    tensors = [*made.parameters(), *made.buffers()]

    def snapshot() -> dict[str, Any]:
        blocks = [
            {"address": one.untyped_storage().data_ptr(), "size": 1 << 18, "state": "active_allocated"}
            for one in tensors
        ]
        blocks.append({"address": 1, "size": 1 << 20, "state": "active_allocated"})
        return {"segments": [{"device": 0, "total_size": 1 << 24, "blocks": blocks}]}

    monkeypatch.setattr(storages, "_is_on", lambda tensor, gpu: True)
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", snapshot)
    return made


def fail() -> None:
    """As torch does: the observer, then the error."""
    out_of_memory._observe(*REQUEST)
    raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 MiB.")


def otherwise() -> None:
    """Fails for a reason of its own, behind one that it has caught."""
    try:
        fail()
    except torch.cuda.OutOfMemoryError:
        raise ValueError("another error") from None


def left(block: Callable[[], None]) -> torch.cuda.OutOfMemoryError:
    """The error that leaves a block."""
    with pytest.warns(TbDlprofWarning, match="tb-dlprof oom "), pytest.raises(torch.cuda.OutOfMemoryError) as caught:
        block()
    return caught.value


def test_an_error_that_leaves_the_block_is_explained_by_holder_and_module(tmp_path: Path, model: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        with explain_oom(tmp_path / "new", model, optimizer):
            fail()

    assert str(left(train)) == "CUDA out of memory. Tried to allocate 64.00 MiB."
    found = read_oom(tmp_path / "new")
    assert (found.requested, found.limit, found.device_free) == REQUEST[1:]
    assert {(row.kind, row.module): row.blocks for row in found.held.rows} == {
        ("unnamed", ""): 1,
        ("parameter", "0"): 2,
        ("parameter", "1"): 2,
        ("buffer", "1"): 3,
    }
    assert found.where[0].endswith(" fail")
    (snapshot,) = (tmp_path / "new").glob("*.pickle")
    assert snapshot.read_bytes()[:2] == b"\x80\x04"
    assert len(pickle.loads(snapshot.read_bytes())["segments"]) == 1


def test_a_failure_within_the_model_names_module_pass_and_batch(tmp_path: Path, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(out_of_memory, "_first_size", lambda one: one.shape[0] if torch.is_tensor(one) else None)
    model[1].forward = lambda x: fail()

    def train() -> None:
        with explain_oom(tmp_path, model):
            model(torch.ones(12, 256))

    left(train)
    found = read_oom(tmp_path)
    assert (found.module, found.during, found.batch_size) == ("1", "forward", 12)


def test_a_function_of_the_script_in_the_backward_pass_is_part_of_it(tmp_path: Path, model: Any) -> None:
    def own_function() -> None:
        out_of_memory._observe(*REQUEST)
        ended.set()

    def _engine_run_backward() -> None:
        # torch starts threads that Python does not know.
        _thread.start_new_thread(own_function, ())
        assert ended.wait(10)
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 MiB.")

    def train() -> None:
        with explain_oom(tmp_path, model):
            _engine_run_backward()

    ended = threading.Event()
    left(train)
    found = read_oom(tmp_path)
    assert found.during == "backward"
    assert [line.rpartition(" ")[2] for line in found.where if "test_out_of_memory" in line][:3] == [
        "own_function",
        "_engine_run_backward",
        "train",
    ]


def test_lines_of_compiled_code_are_none_of_the_script(tmp_path: Path, model: Any) -> None:
    written: dict[str, Any] = {"fail": fail}
    exec(compile("def call():\n    fail()\n", "/tmp/torchinductor_me/ab/code.py", "exec"), written)

    def train() -> None:
        with explain_oom(tmp_path, model):
            written["call"]()

    left(train)
    assert [line.rpartition(" ")[2] for line in read_oom(tmp_path).where][:2] == ["fail", "train"]


def test_a_failure_that_is_caught_is_no_crash(tmp_path: Path, model: Any) -> None:
    with explain_oom(tmp_path, model):
        for _ in range(3):
            with pytest.raises(torch.cuda.OutOfMemoryError):
                fail()
    with pytest.raises(ValueError, match="another"), explain_oom(tmp_path, model):
        otherwise()
    assert files_in(tmp_path) == []


def test_the_profile_explains_with_oom(tmp_path: Path, model: Any) -> None:
    def train() -> None:
        with profile(tmp_path, model, schedule=(5, 1, 1, 1), batch_size=8, oom=True) as prof:
            prof.step()
            fail()

    left(train)
    assert read_oom(tmp_path).batch_size == 8
    assert out_of_memory._WATCHES == []


def test_another_word_for_oom_is_left_out(tmp_path: Path, model: Any) -> None:
    with pytest.warns(TbDlprofWarning, match="oom='all' is left out"):
        profile(tmp_path, model, oom="all")  # type: ignore[arg-type]


def test_what_cannot_be_read_costs_nothing_but_itself(tmp_path: Path, model: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: 1 / 0)

    def train() -> None:
        with explain_oom(tmp_path, model):
            fail()

    left(train)
    found = read_oom(tmp_path)
    assert (found.requested, found.held.allocated) == (64 << 20, 0)
    assert found.notes == ["The allocator's blocks could not be read."]


def test_a_folder_that_cannot_be_written_changes_no_error(tmp_path: Path, model: Any) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.warns(TbDlprofWarning, match="could not be written"),
        pytest.raises(torch.cuda.OutOfMemoryError),
        explain_oom(tmp_path / "file" / "x", model),
    ):
        fail()


SCRIPT = """
import sys, torch
import tb_dlprof_plugin
from tb_dlprof_plugin.capture import out_of_memory
sys.excepthook = lambda *error: print("the script's own hook")
tb_dlprof_plugin.explain_oom(sys.argv[1])
out_of_memory._observe(0, 64 << 20, 1 << 30, 1 << 20)
raise {error}
"""


@pytest.mark.parametrize(
    ("error", "files"), [("torch.cuda.OutOfMemoryError('CUDA out of memory.')", 1), ("ValueError('another')", 0)]
)
def test_the_end_of_the_process_stays_as_it_was(tmp_path: Path, error: str, files: int) -> None:
    command = [sys.executable, "-c", SCRIPT.format(error=error), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "the script's own hook\n"
    found = files_in(tmp_path)
    assert len(found) == files
    assert all(json.loads(file.read_bytes())["requested"] == 64 << 20 for file in found)


RUN_SCRIPT = """
import torch
from tb_dlprof_plugin.capture import out_of_memory
out_of_memory._observe(0, 64 << 20, 1 << 30, 1 << 20)
raise torch.cuda.OutOfMemoryError("CUDA out of memory.")
"""


def test_run_with_oom_explains_an_unchanged_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RUN_SCRIPT)
    for name, options, files in (("with", ["--oom"], 1), ("without", [], 0)):
        command = [
            sys.executable,
            "-m",
            "tb_dlprof_plugin.cli.main",
            "run",
            "--logdir",
            str(tmp_path),
            "--run-name",
            name,
        ]
        done = subprocess.run(
            [*command, "--run-name", name, *options, str(tmp_path / "train.py")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert "CUDA out of memory." in done.stderr
        assert len(files_in(tmp_path / name)) == files
