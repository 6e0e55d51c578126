"""Each command and each block of Python in the skill is run, in order, with a script that trains a little."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

SKILL = Path(__file__).parents[2] / "skills" / "tb-dlprof" / "SKILL.md"
SCRIPT = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
for _ in range(2000):
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
NOT_KNOWN = 2
"""A CPU run has no forecast in another precision: the command says so."""


def test_the_head_is_what_the_format_asks_for() -> None:
    text = SKILL.read_text()
    head = dict(line.split(": ", 1) for line in text.split("---")[1].strip().splitlines())
    assert head["name"] == SKILL.parent.name
    assert len(head["description"]) <= 1024
    assert len(text.splitlines()) < 500
    for path in re.findall(r"\]\((?!https?:)([^)]+)\)", text):
        assert (SKILL.parent / path).is_file()


@pytest.mark.long
def test_commands_and_code_do_what_the_skill_says(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    model = torch.nn.Linear(4, 4)
    names = {"model": model, "batches": [torch.randn(2, 4)] * 4, "train_step": lambda x: model(x).sum().backward()}
    for language, block in re.findall(r"```(sh|python)\n(.*?)```", SKILL.read_text(), re.DOTALL):
        if language == "python":
            exec(block, dict(names))
            assert list(Path("runs/hook").glob("*tfevents*"))
            continue
        for line in block.strip().splitlines():
            program, *arguments = shlex.split(line)
            assert program == "tb-dlprof"
            command = [sys.executable, "-m", "tb_dlprof_plugin.cli.main", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            allowed = (0, NOT_KNOWN) if arguments[0] == "predict" else (0,)
            assert done.returncode in allowed, (line, done.stderr)
            assert "Traceback" not in done.stderr


def test_commands_in_tables_exist() -> None:
    from tb_dlprof_plugin.cli.commands import COMMANDS

    named = re.findall(r"`tb-dlprof ([a-z-]+)", SKILL.read_text())
    assert named
    assert set(named) <= set(COMMANDS)
