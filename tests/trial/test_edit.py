"""Edits of a script as a diff, and remedies that write themselves into one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tb_dlprof_plugin.trial.edit import Edit, ScriptSource, edited
from tb_dlprof_plugin.trial.inside.remedies import classes, make
from tb_dlprof_plugin.trial.training_loop import find_training_loop

SCRIPT = '''"""Trains something."""

from __future__ import annotations

import torch
from torch.optim import AdamW
from torch.utils.data import DataLoader as Loader

from parts import dataset, loss_fn


def main():
    device = "cuda"
    model = torch.nn.Linear(3, 2).to(device)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    loader = Loader(dataset(), batch_size=8, shuffle=True)
    held_out = Loader(dataset(), batch_size=8)
    for epoch in range(3):
        for inputs, targets in loader:
            optimizer.zero_grad(set_to_none=False)
            inputs = inputs.to(device)
            outputs = model(inputs)  # größer

            loss = loss_fn(outputs, targets)
            loss.backward()
            optimizer.step()
            torch.cuda.empty_cache()


main()
'''
PARTS = "def dataset():\n    return [1]\n\n\ndef loss_fn(outputs, targets):\n    return outputs.mean()\n"


@pytest.fixture
def script(tmp_path: Path) -> ScriptSource:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "parts.py").write_text(PARTS, encoding="utf-8")
    return ScriptSource.read(tmp_path / "train.py")


def changed(script: ScriptSource, *names: str) -> list[str]:
    """Added and removed lines of the patch of some remedies."""
    edits: list[Edit] = []
    for name in names:
        own = make(name).patch(script)
        assert own is not None, name
        edits += own
    lines = script.diff(edits).splitlines()
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_reads_the_script_and_the_modules_of_its_folder(script: ScriptSource) -> None:
    assert [file.path.name for file in script.files] == ["train.py", "parts.py"]


def test_a_file_that_is_not_python_is_an_error_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nfor")
    with pytest.raises(ValueError, match="line 2"):
        ScriptSource.read(tmp_path / "train.py")


def test_finds_the_training_loop(script: ScriptSource) -> None:
    loop = find_training_loop(script)
    assert loop is not None
    assert (loop.model, loop.loss, loop.optimizer) == ("model", "loss", "optimizer")
    assert [loop.file.source(one) for one in loop.computes_loss] == [
        "outputs = model(inputs)",
        "loss = loss_fn(outputs, targets)",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("loss.backward()", "loss.backward()\n            optimizer.step()\n            other.step()"),
        ("outputs = model(inputs)", "outputs = anything(inputs)"),
    ],
)
def test_a_loop_that_is_not_plain_is_left_alone(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace(before, after), encoding="utf-8")
    script = ScriptSource.read(tmp_path / "train.py")
    assert find_training_loop(script) is None
    assert make("bf16_autocast").patch(script) is None


def test_loader_settings_go_to_the_loader_that_shuffles(script: ScriptSource) -> None:
    assert changed(script, "loader_workers_2", "pin_memory") == [
        "-    loader = Loader(dataset(), batch_size=8, shuffle=True)",
        (
            "+    loader = Loader(dataset(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True, "
            "pin_memory=True)"
        ),
    ]


def test_several_loaders_that_may_be_meant_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("batch_size=8)", "shuffle=True)"), encoding="utf-8")
    assert make("pin_memory").patch(ScriptSource.read(tmp_path / "train.py")) is None


def test_autocast_indents_the_computation_of_the_loss(script: ScriptSource) -> None:
    assert changed(script, "bf16_autocast") == [
        "-            outputs = model(inputs)  # größer",
        '+            with torch.autocast("cuda", dtype=torch.bfloat16):',
        "+                outputs = model(inputs)  # größer",
        "-            loss = loss_fn(outputs, targets)",
        "+                loss = loss_fn(outputs, targets)",
    ]


def test_gradients_that_are_set_to_zero_before_the_backward_pass_stay_where_they_are(tmp_path: Path) -> None:
    zero = "            optimizer.zero_grad(set_to_none=False)\n"
    backward = "            loss.backward()\n"
    later = SCRIPT.replace(zero, "").replace(backward, zero + backward)
    for name, text in (("train.py", later), ("parts.py", PARTS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = changed(ScriptSource.read(tmp_path / "train.py"), "bf16_autocast")
    assert "+                loss = loss_fn(outputs, targets)" in lines
    assert not any("zero_grad" in line for line in lines)


def test_fp16_comes_with_a_scaler(script: ScriptSource) -> None:
    added = [line for line in changed(script, "fp16_autocast") if line.startswith("+")]
    assert added == [
        '+    scaler = torch.amp.GradScaler("cuda")',
        '+            with torch.autocast("cuda", dtype=torch.float16):',
        "+                outputs = model(inputs)  # größer",
        "+                loss = loss_fn(outputs, targets)",
        "+            scaler.scale(loss).backward()",
        "+            scaler.step(optimizer)",
        "+            scaler.update()",
    ]


def test_a_best_set_is_one_patch(script: ScriptSource) -> None:
    lines = changed(
        script, "tf32", "cudnn_benchmark", "fused_optimizer", "zero_grad_to_none", "no_empty_cache", "compile"
    )
    assert "-            torch.cuda.empty_cache()" in lines
    assert [line for line in lines if line.startswith("+") and line != "+"] == [
        '+torch.set_float32_matmul_precision("high")  # TF32 in matrix products',
        "+torch.backends.cudnn.allow_tf32 = True       # TF32 in convolutions",
        "+torch.backends.cudnn.benchmark = True",
        "+    optimizer = AdamW(model.parameters(), lr=1e-3, fused=True)",
        "+    model.compile()",
        "+            optimizer.zero_grad(set_to_none=True)",
    ]


@pytest.mark.parametrize("name", classes())
def test_a_patch_of_any_remedy_is_python_and_applies(name: str, script: ScriptSource, tmp_path: Path) -> None:
    edits = make(name).patch(script)
    if not edits:
        assert make(name).code()
        return
    diff = script.diff(edits)
    before = (tmp_path / "train.py").read_bytes()
    assert (tmp_path / "train.py").read_bytes() == before
    if (patch := shutil.which("patch")) is not None:
        subprocess.run([patch, "-p1", "-s"], input=diff, text=True, cwd=tmp_path, check=True)
        assert (tmp_path / "train.py").read_bytes() != before
        compile((tmp_path / "train.py").read_text(), "train.py", "exec")


def test_a_file_without_a_newline_at_its_end_gets_a_patch_that_applies(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx = 1")
    script = ScriptSource.read(tmp_path / "a.py")
    assert "\\ No newline at end of file\n" in script.diff([script.script.replace(script.script.tree.body[1], "x = 2")])


def test_two_changes_of_the_same_code_are_an_error() -> None:
    with pytest.raises(ValueError, match="two changes"):
        edited("abcdef", [Edit(Path("a.py"), 0, 3, "x"), Edit(Path("a.py"), 2, 4, "y")])


def test_what_is_already_imported_is_not_imported_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch as t\nt.ones(1)\n")
    assert "+import torch\n" in ScriptSource.read(tmp_path / "a.py").diff(
        make("cudnn_benchmark").patch(ScriptSource.read(tmp_path / "a.py")) or []
    )
