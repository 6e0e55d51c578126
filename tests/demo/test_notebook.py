"""The notebook is a valid notebook, and its cells run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "demo" / "colab.ipynb"


def _cells() -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]
    return cells


def _code() -> list[str]:
    return ["".join(cell["source"]) for cell in _cells() if cell["cell_type"] == "code"]


def test_it_has_the_structure_of_notebook_format_4() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    assert notebook["nbformat_minor"] >= 5
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        assert isinstance(cell["metadata"], dict)
        assert all(isinstance(line, str) for line in cell["source"])
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None


def test_it_installs_the_plugin_and_opens_tensorboard() -> None:
    code = "\n".join(_code())
    assert "%pip install" in code
    assert "%load_ext tensorboard" in code
    assert "%tensorboard --logdir runs" in code


def test_it_says_that_an_older_server_must_end_first() -> None:
    text = " ".join("".join(cell["source"]) for cell in _cells() if cell["cell_type"] == "markdown")
    assert "end it first" in text


@pytest.mark.slow
def test_its_training_cells_leave_an_event_file_for_each_precision(tmp_path: Path) -> None:
    lines = "\n".join(_code()).splitlines()
    script = tmp_path / "notebook.py"
    script.write_text("\n".join(line for line in lines if not line.startswith(("%", "!"))))
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
        "TB_DLPROF_NOTEBOOK_QUICK": "1",
        "TB_DLPROF_NOTEBOOK_LOGDIR": str(tmp_path / "runs"),
    }
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = [path.parent.name for path in (tmp_path / "runs").rglob("events.out.tfevents.*")]
    assert sorted(written) == ["amp", "fp32"]
